<?php // SPDX-License-Identifier: Apache-2.0
require 'util.php';
switch ($argv[1]) {
case 'hello': echo 'hello ', answer(), "\n"; break;
case 'stdin': echo stream_get_contents(STDIN); break;
case 'env': echo getenv('WORD'), ' ', getcwd(), "\n"; break;
case 'args': foreach (array_slice($argv, 2) as $word) { echo "[$word]"; } readfile('data.txt'); break;
case 'signal': exec('kill -KILL ' . getmypid()); break;
case 'exit': exit(3);
case 'error': throw new Exception('on purpose');
case 'timeout': while (true) {}
case 'memory': $kept = []; while (true) { $kept[] = str_repeat('x', 8 << 20); }
case 'fork': $kept = []; for ($i = 0; $i < 10000; $i++) { $kept[] = @proc_open(['sleep', '100'], [], $pipes); } while (true) {}
case 'unicode': echo "grüße 日本語 🎉\n"; break;
case 'output': for ($i = 0; $i < 16384; $i++) { echo str_repeat('x', 63), "\n"; } break;
case 'sort':
    $x = 42;
    $numbers = [];
    for ($i = 0; $i < 1000000; $i++) { $x = ($x * 1664525 + 1013904223) % 4294967296; $numbers[] = $x; }
    sort($numbers);
    echo $numbers[500000], ' ', $numbers[999999], "\n";
}
