// SPDX-License-Identifier: Apache-2.0
// Compile WORD... --jar WORD...: javac with the first words, then jar with the others. One JVM, as its start is most of their time.

import java.util.Arrays;
import java.util.spi.ToolProvider;

final class Compile {
    public static void main(String[] words) {
        int at = Arrays.asList(words).lastIndexOf("--jar");
        run("javac", Arrays.copyOfRange(words, 0, at));
        run("jar", Arrays.copyOfRange(words, at + 1, words.length));
    }

    private static void run(String tool, String[] words) {
        int status = ToolProvider.findFirst(tool).orElseThrow().run(System.out, System.err, words);
        if (status != 0)
            System.exit(status);
    }
}
