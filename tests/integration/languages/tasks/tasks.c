/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int gcd(int a, int b)
{
	return b ? gcd(b, a % b) : a;
}
static int hanoi(int n)
{
	return n ? 2 * hanoi(n - 1) + 1 : 0;
}
static int choose(int n, int k)
{
	return k == 0 || k == n ? 1 : choose(n - 1, k - 1) + choose(n - 1, k);
}
static const char *yes(int truth)
{
	return truth ? "yes" : "no";
}

static int is_prime(int n)
{
	for (int d = 2; d * d <= n; d++)
		if (n % d == 0)
			return 0;
	return n > 1;
}

static int factor(int n)
{
	for (int p = 2; p * p <= n;)
		if (n % p)
			p++;
		else
			n /= p;
	return n;
}

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}
static int by_letter(const void *a, const void *b)
{
	return *(const char *)a - *(const char *)b;
}

static void reverse(char *text)
{
	for (size_t i = 0, k = strlen(text); i + 1 < k; i++) {
		char c = text[i];

		text[i] = text[--k];
		text[k] = c;
	}
}

static void show_frequent(void)
{
	char text[] = "one two three two one two", *words[8] = {0};
	int count = 0, best = 0, most = 0;

	for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
		words[count++] = word;
	for (int i = 0; i < count; i++) {
		int n = 0;

		for (int k = 0; k < count; k++)
			n += strcmp(words[i], words[k]) == 0;
		if (n > most) {
			most = n;
			best = i;
		}
	}
	printf("frequent %s\n", words[best]);
}

static void show_caesar(const char *text, int by)
{
	printf("caesar ");
	for (; *text; text++) {
		int base = islower((unsigned char)*text) ? 'a' : 'A';

		putchar(isalpha((unsigned char)*text) ? (*text - base + by) % 26 + base : *text);
	}
	printf("\n");
}

static void show_binary(int n)
{
	char bits[33] = "";

	for (int i = 0; n; n /= 2)
		bits[i++] = (char)('0' + n % 2);
	reverse(bits);
	printf("binary %s\n", bits);
}

static int search(const int *values, int count, int wanted)
{
	int low = 0, high = count;

	while (low < high) {
		int middle = (low + high) / 2;

		if (values[middle] < wanted)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void show_roman(int n)
{
	static const int values[] = {1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1};
	static const char *const letters[] = {"M",  "CM", "D",  "CD", "C",  "XC", "L",
	                                      "XL", "X",  "IX", "V",  "IV", "I"};

	printf("roman ");
	for (int i = 0; i < 13; i++)
		for (; n >= values[i]; n -= values[i])
			printf("%s", letters[i]);
	printf("\n");
}

static int is_balanced(const char *text)
{
	char stack[32];
	int top = 0;

	for (; *text; text++) {
		const char *at = strchr("()[]{}", *text);

		if (strchr("([{", *text))
			stack[top++] = at[1];
		else if (top == 0 || stack[--top] != *text)
			return 0;
	}
	return top == 0;
}

static void show_matrix(void)
{
	int a[2][2] = {{1, 2}, {3, 4}};

	printf("matrix");
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < 2; k++)
			printf(" %d", a[i][0] * a[0][k] + a[i][1] * a[1][k]);
	printf("\n");
}

static void show_runs(const char *text)
{
	printf("runs ");
	for (size_t n; *text; text += n) {
		for (n = 1; text[n] == *text; n++)
			;
		printf("%c%zu", *text, n);
	}
	printf("\n");
}

int main(void)
{
	int sum = 0, product = 1, primes = 0, steps = 0, digits = 0, vowels = 0, power = 1,
	    best = -99, here = 0, leap = 0;
	int values[] = {5, 3, 9, 1, 7}, gains[] = {-2, 1, -3, 4, -1, 2, 1, -5, 4};
	char word[] = "stressed", mirror[] = "racecar", one[] = "listen", two[] = "silent";
	long a = 0, b = 1;

	for (int i = 1; i <= 100; i++)
		sum += i;
	for (int i = 2; i <= 10; i++)
		product *= i;
	for (int i = 0; i < 50; i++) {
		long c = a + b;

		a = b;
		b = c;
	}
	for (int n = 0; n < 1000; n++)
		primes += is_prime(n);
	for (long n = 27; n != 1; n = n % 2 ? 3 * n + 1 : n / 2)
		steps++;
	for (int n = 1 << 15; n; n /= 10)
		digits += n % 10;
	printf("sum %d\nfactorial %d\nfibonacci %ld\ngcd %d\nlcm %d\n", sum, product, a,
	       gcd(1071, 462), 21 * 6 / gcd(21, 6));
	printf("primes %d\nfactor %d\ncollatz %d\ndigits %d\n", primes, factor(13195), steps,
	       digits);
	reverse(word);
	printf("reverse %s\n", word);
	reverse(mirror);
	printf("palindrome %s\n", yes(strcmp(mirror, "racecar") == 0));
	for (const char *c = "the quick brown fox"; *c; c++)
		vowels += strchr("aeiou", *c) != NULL;
	printf("vowels %d\n", vowels);
	show_frequent();
	show_caesar("Hello, World", 3);
	show_binary(37);
	printf("hex %x\n", 255);
	qsort(values, 5, sizeof(int), by_value);
	printf("sort %d %d %d %d %d\n", values[0], values[1], values[2], values[3], values[4]);
	printf("search %d\n", search(values, 5, 7));
	for (int i = 0; i < 200; i++)
		power = power * 3 % 13;
	printf("powmod %d\n", power);
	show_matrix();
	printf("pascal");
	for (int k = 0; k <= 5; k++)
		printf(" %d", choose(5, k));
	printf("\n");
	show_roman(1994);
	qsort(one, 6, 1, by_letter);
	qsort(two, 6, 1, by_letter);
	printf("anagram %s\n", yes(strcmp(one, two) == 0));
	for (int i = 0; i < 9; i++) {
		here = here > 0 ? here + gains[i] : gains[i];
		best = here > best ? here : best;
	}
	printf("subarray %d\nbrackets %s\nhanoi %d\nperfect", best, yes(is_balanced("{[()]}(")),
	       hanoi(10));
	for (int n = 2; n < 500; n++) {
		int total = 0;

		for (int d = 1; d < n; d++)
			total += n % d ? 0 : d;
		if (total == n)
			printf(" %d", n);
	}
	printf("\nfizzbuzz");
	for (int n = 1; n <= 15; n++)
		if (n % 3 && n % 5)
			printf(" %d", n);
		else
			printf(" %s%s", n % 3 ? "" : "Fizz", n % 5 ? "" : "Buzz");
	printf("\n");
	show_runs("aaabbc");
	for (int y = 1900; y <= 2000; y++)
		leap += y % 4 == 0 && (y % 100 || y % 400 == 0);
	printf("leap %d\n", leap);
}
