// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Diagnostics;

class Program {
    static int Main(string[] args) {
        switch (args[0]) {
        case "hello": Console.WriteLine("hello " + Util.Answer()); break;
        case "stdin": Console.Write(Console.In.ReadToEnd()); break;
        case "env": Console.WriteLine(Environment.GetEnvironmentVariable("WORD") + " " + Environment.CurrentDirectory); break;
        case "args": {
            for (int i = 1; i < args.Length; i++) Console.Write("[" + args[i] + "]");
            Console.Write(System.IO.File.ReadAllText("data.txt"));
            break;
        }
        case "signal": Process.Start("kill", "-KILL " + Process.GetCurrentProcess().Id).WaitForExit(); break;
        case "exit": return 3;
        case "error": throw new InvalidOperationException("on purpose");
        case "timeout": while (true) {}
        case "memory": { var kept = new List<byte[]>(); while (true) { var b = new byte[8 << 20]; for (int i = 0; i < b.Length; i += 512) b[i] = 1; kept.Add(b); } }
        case "fork": while (true) { try { Process.Start("sleep", "100"); } catch (Exception) { } }
        case "unicode": Console.WriteLine("grüße 日本語 🎉"); break;
        case "output": for (int i = 0; i < 16384; i++) Console.WriteLine(new string('x', 63)); break;
        case "sort": {
            long x = 42;
            var numbers = new long[1000000];
            for (int i = 0; i < numbers.Length; i++) { x = (x * 1664525 + 1013904223) % 4294967296L; numbers[i] = x; }
            Array.Sort(numbers);
            Console.WriteLine(numbers[500000] + " " + numbers[999999]);
            break;
        }
        }
        return 0;
    }
}
