# SPDX-License-Identifier: Apache-2.0
source util.fish
switch $argv[1]
case hello; echo hello (answer)
case stdin; cat
case env; echo $WORD (pwd)
case args; printf '[%s]' $argv[2..]; cat data.txt
case signal; kill -KILL $fish_pid
case exit; exit 3
case error; no-such-command; or exit $status
case timeout; while true; end
case memory; set x xxxxxxxx; while true; set x $x$x; end
case fork; while true; sleep 100 &; end
case unicode; echo 'grüße 日本語 🎉'
case output; for i in (seq 16384); echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; end
case sort; echo (awk 'BEGIN { x = 42; for (i = 0; i < 1000000; i++) { x = (x * 1664525 + 1013904223) % 4294967296; printf "%.0f\n", x } }' | sort -n | sed -n '500001p;1000000p')
end
