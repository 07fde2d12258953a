# SPDX-License-Identifier: Apache-2.0
import os, sys
import util
mode = sys.argv[1]
if mode == "hello":
    print("hello", util.answer())
elif mode == "stdin":
    sys.stdout.write(sys.stdin.read())
elif mode == "env":
    print(os.environ["WORD"], os.getcwd())
elif mode == "args":
    sys.stdout.write("".join(f"[{word}]" for word in sys.argv[2:]) + open("data.txt").read())
elif mode == "signal":
    os.kill(os.getpid(), 9)
elif mode == "exit":
    sys.exit(3)
elif mode == "error":
    raise ValueError("on purpose")
elif mode == "timeout":
    while True:
        pass
elif mode == "memory":
    kept = []
    while True:
        kept.append(bytearray(b"x" * (8 << 20)))
elif mode == "fork":
    while True:
        os.fork()
elif mode == "unicode":
    print("grüße 日本語 🎉")
elif mode == "output":
    for _ in range(16384):
        print("x" * 63)
elif mode == "sort":
    x, numbers = 42, []
    for _ in range(1000000):
        x = (x * 1664525 + 1013904223) % 4294967296
        numbers.append(x)
    numbers.sort()
    print(numbers[500000], numbers[-1])
