# SPDX-License-Identifier: Apache-2.0
require 'util'
case ARGV[0]
when 'hello' then puts "hello #{answer}"
when 'stdin' then print STDIN.read
when 'env' then puts "#{ENV['WORD']} #{Dir.pwd}"
when 'args' then print ARGV[1..].map { |word| "[#{word}]" }.join, File.read('data.txt')
when 'signal' then Process.kill('KILL', $$)
when 'exit' then exit 3
when 'error' then raise 'on purpose'
when 'timeout' then loop {}
when 'memory'
  kept = []
  loop { kept << 'x' * (8 << 20) }
when 'fork' then loop { fork }
when 'unicode' then puts 'grüße 日本語 🎉'
when 'output' then 16384.times { puts 'x' * 63 }
when 'sort'
  x = 42
  numbers = Array.new(1_000_000) { x = (x * 1664525 + 1013904223) % 4294967296 }
  numbers.sort!
  puts "#{numbers[500000]} #{numbers[-1]}"
end
