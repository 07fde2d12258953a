-- SPDX-License-Identifier: Apache-2.0
local util = require 'util'
local mode = arg[1]
if mode == 'hello' then print('hello ' .. util.answer())
elseif mode == 'stdin' then io.write(io.read('a'))
elseif mode == 'env' then print(os.getenv('WORD') .. ' ' .. io.popen('pwd'):read('l'))
elseif mode == 'args' then
  for i = 2, #arg do io.write('[' .. arg[i] .. ']') end
  io.write(io.open('data.txt'):read('a'))
elseif mode == 'signal' then os.execute('kill -KILL $PPID')
elseif mode == 'exit' then os.exit(3)
elseif mode == 'error' then error('on purpose')
elseif mode == 'timeout' then while true do end
elseif mode == 'memory' then
  local kept = {}
  while true do kept[#kept + 1] = string.rep('x', 8 * 1024 * 1024) .. #kept end
elseif mode == 'fork' then while true do io.popen('sleep 100') end
elseif mode == 'unicode' then print('grüße 日本語 🎉')
elseif mode == 'output' then for _ = 1, 16384 do print(string.rep('x', 63)) end
elseif mode == 'sort' then
  local x, numbers = 42, {}
  for i = 1, 1000000 do
    x = (x * 1664525 + 1013904223) % 4294967296
    numbers[i] = x
  end
  table.sort(numbers)
  print(numbers[500001] .. ' ' .. numbers[1000000])
end
