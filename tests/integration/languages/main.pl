# SPDX-License-Identifier: Apache-2.0
use strict;
use warnings;
use Cwd;
use util;
my $mode = $ARGV[0];
if ($mode eq 'hello') { print "hello ", util::answer(), "\n"; }
elsif ($mode eq 'stdin') { print while <STDIN>; }
elsif ($mode eq 'env') { print "$ENV{WORD} ", getcwd(), "\n"; }
elsif ($mode eq 'args') { print map { "[$_]" } @ARGV[1 .. $#ARGV]; open my $file, '<', 'data.txt'; print <$file>; }
elsif ($mode eq 'signal') { kill KILL => $$; }
elsif ($mode eq 'exit') { exit 3; }
elsif ($mode eq 'error') { die "on purpose"; }
elsif ($mode eq 'timeout') { 1 while 1; }
elsif ($mode eq 'memory') { my @kept; push @kept, 'x' x (8 << 20) . scalar(@kept) while 1; }
elsif ($mode eq 'fork') { fork while 1; }
elsif ($mode eq 'unicode') { print "grüße 日本語 🎉\n"; }
elsif ($mode eq 'output') { print 'x' x 63, "\n" for 1 .. 16384; }
elsif ($mode eq 'sort') {
    my ($x, @numbers) = (42);
    for (1 .. 1000000) { $x = ($x * 1664525 + 1013904223) % 4294967296; push @numbers, $x; }
    @numbers = sort { $a <=> $b } @numbers;
    print "$numbers[500000] $numbers[-1]\n";
}
