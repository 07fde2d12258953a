// SPDX-License-Identifier: Apache-2.0
import java.util.*;
import java.util.function.*;
import java.util.stream.*;

public class Tasks {
    static int gcd(int a, int b) { return b == 0 ? a : gcd(b, a % b); }
    static String yes(boolean truth) { return truth ? "yes" : "no"; }
    static boolean isPrime(int n) { return IntStream.range(2, n).allMatch(d -> n % d != 0); }
    static int collatz(long n) { return n == 1 ? 0 : 1 + collatz(n % 2 == 0 ? n / 2 : 3 * n + 1); }
    static int hanoi(int n) { return n == 0 ? 0 : 2 * hanoi(n - 1) + 1; }
    static int choose(int n, int k) { return k == 0 || k == n ? 1 : choose(n - 1, k - 1) + choose(n - 1, k); }
    static String backwards(String text) { return new StringBuilder(text).reverse().toString(); }
    static String join(IntStream list) { return list.mapToObj(String::valueOf).collect(Collectors.joining(" ")); }
    static String letters(String text) { return text.chars().sorted().mapToObj(Character::toString).collect(Collectors.joining()); }

    static int factor(int n) {
        for (int p = 2; p * p <= n;) if (n % p == 0) n /= p; else p++;
        return n;
    }

    static String frequent(String text) {
        var counts = Arrays.stream(text.split(" ")).collect(Collectors.groupingBy(Function.identity(), Collectors.counting()));
        return Collections.max(counts.entrySet(), Map.Entry.comparingByValue()).getKey();
    }

    static String caesar(String text, int by) {
        return text.chars().map(c -> !Character.isLetter(c) ? c : (c - (c < 'a' ? 'A' : 'a') + by) % 26 + (c < 'a' ? 'A' : 'a'))
            .mapToObj(Character::toString).collect(Collectors.joining());
    }

    static String roman(int n) {
        int[] values = {1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1};
        String[] words = "M CM D CD C XC L XL X IX V IV I".split(" ");
        var text = new StringBuilder();
        for (int i = 0; i < values.length; n %= values[i++]) text.append(words[i].repeat(n / values[i]));
        return text.toString();
    }

    static int subarray(int... values) {
        int best = values[0], here = 0;
        for (int value : values) best = Math.max(best, here = Math.max(value, here + value));
        return best;
    }

    static boolean isBalanced(String text) {
        var stack = new ArrayDeque<Character>();
        for (char c : text.toCharArray()) {
            int at = "()[]{}".indexOf(c);
            if (at % 2 == 0) stack.push("()[]{}".charAt(at + 1));
            else if (stack.isEmpty() || stack.pop() != c) return false;
        }
        return stack.isEmpty();
    }

    static String runs(String text) {
        var result = new StringBuilder();
        for (int i = 0, n; i < text.length(); i += n) {
            for (n = 1; i + n < text.length() && text.charAt(i + n) == text.charAt(i); n++);
            result.append(text.charAt(i)).append(n);
        }
        return result.toString();
    }

    static String fizzbuzz(int n) {
        String word = (n % 3 == 0 ? "Fizz" : "") + (n % 5 == 0 ? "Buzz" : "");
        return word.isEmpty() ? String.valueOf(n) : word;
    }

    static void show(String name, Object value) { System.out.println(name + " " + value); }

    public static void main(String[] args) {
        int[] values = {5, 3, 9, 1, 7};
        int[][] m = {{1, 2}, {3, 4}};
        show("sum", IntStream.rangeClosed(1, 100).sum());
        show("factorial", IntStream.rangeClosed(1, 10).reduce(1, (a, b) -> a * b));
        show("fibonacci", Stream.iterate(new long[] {0, 1}, p -> new long[] {p[1], p[0] + p[1]}).skip(50).findFirst().get()[0]);
        show("gcd", gcd(1071, 462));
        show("lcm", 21 * 6 / gcd(21, 6));
        show("primes", IntStream.range(2, 1000).filter(Tasks::isPrime).count());
        show("factor", factor(13195));
        show("collatz", collatz(27));
        show("digits", String.valueOf(1 << 15).chars().map(c -> c - '0').sum());
        show("reverse", backwards("stressed"));
        show("palindrome", yes(backwards("racecar").equals("racecar")));
        show("vowels", "the quick brown fox".chars().filter(c -> "aeiou".indexOf(c) >= 0).count());
        show("frequent", frequent("one two three two one two"));
        show("caesar", caesar("Hello, World", 3));
        show("binary", Integer.toBinaryString(37));
        show("hex", Integer.toHexString(255));
        Arrays.sort(values);
        show("sort", join(Arrays.stream(values)));
        show("search", Arrays.binarySearch(values, 7));
        show("powmod", IntStream.range(0, 200).reduce(1, (p, i) -> p * 3 % 13));
        show("matrix", join(IntStream.range(0, 4).map(i -> m[i / 2][0] * m[0][i % 2] + m[i / 2][1] * m[1][i % 2])));
        show("pascal", join(IntStream.rangeClosed(0, 5).map(k -> choose(5, k))));
        show("roman", roman(1994));
        show("anagram", yes(letters("listen").equals(letters("silent"))));
        show("subarray", subarray(-2, 1, -3, 4, -1, 2, 1, -5, 4));
        show("brackets", yes(isBalanced("{[()]}(")));
        show("hanoi", hanoi(10));
        show("perfect", join(IntStream.range(2, 500).filter(n -> IntStream.range(1, n).filter(d -> n % d == 0).sum() == n)));
        show("fizzbuzz", IntStream.rangeClosed(1, 15).mapToObj(Tasks::fizzbuzz).collect(Collectors.joining(" ")));
        show("runs", runs("aaabbc"));
        show("leap", IntStream.rangeClosed(1900, 2000).filter(y -> y % 4 == 0 && (y % 100 != 0 || y % 400 == 0)).count());
    }
}
