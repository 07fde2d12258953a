// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Linq;

class Tasks {
    static int Gcd(int a, int b) => b == 0 ? a : Gcd(b, a % b);
    static string Yes(bool truth) => truth ? "yes" : "no";
    static IEnumerable<int> Between(int from, int to) => Enumerable.Range(from, to - from + 1);
    static bool IsPrime(int n) => Between(2, n - 1).All(d => n % d != 0);
    static int Collatz(long n) => n == 1 ? 0 : 1 + Collatz(n % 2 == 0 ? n / 2 : 3 * n + 1);
    static int Hanoi(int n) => n == 0 ? 0 : 2 * Hanoi(n - 1) + 1;
    static int Choose(int n, int k) => k == 0 || k == n ? 1 : Choose(n - 1, k - 1) + Choose(n - 1, k);
    static string Backwards(string text) => new string(text.Reverse().ToArray());
    static string Letters(string text) => new string(text.OrderBy(c => c).ToArray());
    static string Join<T>(IEnumerable<T> list) => string.Join(" ", list);
    static char Shift(char c, int by, char first) => (char)((c - first + by) % 26 + first);

    static long Fibonacci(int n) {
        long a = 0, b = 1;
        for (; n > 0; n--) { b += a; a = b - a; }
        return a;
    }

    static int Factor(int n) {
        for (int p = 2; p * p <= n;) if (n % p == 0) n /= p; else p++;
        return n;
    }

    static int Search(int[] values, int wanted) {
        int low = 0, high = values.Length;
        while (low < high) {
            int middle = (low + high) / 2;
            if (values[middle] < wanted) low = middle + 1; else high = middle;
        }
        return low;
    }

    static string Roman(int n) {
        int[] values = {1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1};
        string[] words = "M CM D CD C XC L XL X IX V IV I".Split(' ');
        string text = "";
        for (int i = 0; i < values.Length; i++) for (; n >= values[i]; n -= values[i]) text += words[i];
        return text;
    }

    static int Subarray(params int[] values) {
        int best = values[0], here = 0;
        foreach (int value in values) best = Math.Max(best, here = Math.Max(value, here + value));
        return best;
    }

    static bool IsBalanced(string text) {
        var stack = new Stack<char>();
        foreach (char c in text) {
            int at = "()[]{}".IndexOf(c);
            if (at % 2 == 0) stack.Push("()[]{}"[at + 1]);
            else if (stack.Count == 0 || stack.Pop() != c) return false;
        }
        return stack.Count == 0;
    }

    static string Runs(string text) {
        string result = "";
        for (int i = 0, n; i < text.Length; i += n) {
            n = text.Skip(i).TakeWhile(c => c == text[i]).Count();
            result += text[i] + n.ToString();
        }
        return result;
    }

    static string FizzBuzz(int n) {
        string word = (n % 3 == 0 ? "Fizz" : "") + (n % 5 == 0 ? "Buzz" : "");
        return word == "" ? n.ToString() : word;
    }

    static void Show(string name, object value) { Console.WriteLine(name + " " + value); }

    static void Main() {
        int[] values = {5, 3, 9, 1, 7};
        int[,] m = {{1, 2}, {3, 4}};
        Show("sum", Between(1, 100).Sum());
        Show("factorial", Between(1, 10).Aggregate((a, b) => a * b));
        Show("fibonacci", Fibonacci(50));
        Show("gcd", Gcd(1071, 462));
        Show("lcm", 21 * 6 / Gcd(21, 6));
        Show("primes", Between(2, 999).Count(IsPrime));
        Show("factor", Factor(13195));
        Show("collatz", Collatz(27));
        Show("digits", (1 << 15).ToString().Sum(c => c - '0'));
        Show("reverse", Backwards("stressed"));
        Show("palindrome", Yes(Backwards("racecar") == "racecar"));
        Show("vowels", "the quick brown fox".Count(c => "aeiou".Contains(c)));
        Show("frequent", "one two three two one two".Split(' ').GroupBy(w => w).OrderByDescending(g => g.Count()).First().Key);
        Show("caesar", string.Concat("Hello, World".Select(c => char.IsLower(c) ? Shift(c, 3, 'a') : char.IsUpper(c) ? Shift(c, 3, 'A') : c)));
        Show("binary", Convert.ToString(37, 2));
        Show("hex", 255.ToString("x"));
        Array.Sort(values);
        Show("sort", Join(values));
        Show("search", Search(values, 7));
        Show("powmod", Between(1, 200).Aggregate(1, (p, i) => p * 3 % 13));
        Show("matrix", Join(Between(0, 3).Select(i => m[i / 2, 0] * m[0, i % 2] + m[i / 2, 1] * m[1, i % 2])));
        Show("pascal", Join(Between(0, 5).Select(k => Choose(5, k))));
        Show("roman", Roman(1994));
        Show("anagram", Yes(Letters("listen") == Letters("silent")));
        Show("subarray", Subarray(-2, 1, -3, 4, -1, 2, 1, -5, 4));
        Show("brackets", Yes(IsBalanced("{[()]}(")));
        Show("hanoi", Hanoi(10));
        Show("perfect", Join(Between(2, 499).Where(n => Between(1, n - 1).Where(d => n % d == 0).Sum() == n)));
        Show("fizzbuzz", Join(Between(1, 15).Select(FizzBuzz)));
        Show("runs", Runs("aaabbc"));
        Show("leap", Between(1900, 2000).Count(y => y % 4 == 0 && (y % 100 != 0 || y % 400 == 0)));
    }
}
