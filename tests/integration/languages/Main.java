// SPDX-License-Identifier: Apache-2.0
import java.util.*;
import java.io.*;

public class Main {
    public static void main(String[] args) throws Exception {
        switch (args[0]) {
        case "hello": System.out.println("hello " + Util.answer()); break;
        case "stdin": System.in.transferTo(System.out); System.out.flush(); break;
        case "env": System.out.println(System.getenv("WORD") + " " + System.getProperty("user.dir")); break;
        case "args": {
            for (int i = 1; i < args.length; i++) System.out.print("[" + args[i] + "]");
            System.out.print(new String(new FileInputStream("data.txt").readAllBytes(), "UTF-8"));
            break;
        }
        case "signal": new ProcessBuilder("kill", "-KILL", "" + ProcessHandle.current().pid()).start().waitFor(); break;
        case "exit": System.exit(3); break;
        case "error": throw new IllegalStateException("on purpose");
        case "timeout": while (true) {}
        case "memory": { List<byte[]> kept = new ArrayList<>(); while (true) { byte[] b = new byte[8 << 20]; Arrays.fill(b, (byte) 1); kept.add(b); } }
        case "fork": while (true) { try { new ProcessBuilder("sleep", "100").start(); } catch (IOException e) { } }
        case "unicode": new PrintStream(System.out, true, "UTF-8").println("grüße 日本語 🎉"); break;
        case "output": { StringBuilder b = new StringBuilder(); for (int i = 0; i < 16384; i++) b.append("x".repeat(63)).append("\n"); System.out.print(b); break; }
        case "sort": {
            long x = 42;
            long[] numbers = new long[1000000];
            for (int i = 0; i < numbers.length; i++) { x = (x * 1664525 + 1013904223) % 4294967296L; numbers[i] = x; }
            Arrays.sort(numbers);
            System.out.println(numbers[500000] + " " + numbers[999999]);
        }
        }
    }
}
