import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Collectors;

import org.apache.kafka.admin.AdminUtils;
import org.apache.kafka.admin.BrokerMetadata;

/**
 * Asks Kafka's AdminUtils, one case per line of standard input, one answer per line of standard output.
 *
 * A case: partitions, replication factor, start index, start partition and the brokers, separated by tabs; brokers as
 * {@code id} or {@code id=rack}, separated by commas. An answer: {@code 0=3,1,2;1=1,2,0}, or an exclamation mark and the
 * message of the exception.
 *
 * With {@code time <repetitions>} as arguments each answer is instead the least number of nanoseconds the case took.
 */
public final class AdminUtilsReference {
    private record Case(int partitions, int factor, int startIndex, int startPartition, List<BrokerMetadata> brokers) {
        static Case parse(String line) {
            String[] fields = line.split("\t", -1);
            List<BrokerMetadata> brokers = new ArrayList<>();
            for (String word : fields[4].isEmpty() ? new String[0] : fields[4].split(",")) {
                String[] idAndRack = word.split("=", 2);
                Optional<String> rack = idAndRack.length == 2 ? Optional.of(idAndRack[1]) : Optional.empty();
                brokers.add(new BrokerMetadata(Integer.parseInt(idAndRack[0]), rack));
            }
            return new Case(Integer.parseInt(fields[0]), Integer.parseInt(fields[1]), Integer.parseInt(fields[2]),
                Integer.parseInt(fields[3]), brokers);
        }

        Map<Integer, List<Integer>> place() {
            return AdminUtils.assignReplicasToBrokers(brokers, partitions, factor, startIndex, startPartition);
        }
    }

    public static void main(String[] arguments) throws Exception {
        int repetitions = arguments.length == 2 ? Integer.parseInt(arguments[1]) : 0;
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Case asked = Case.parse(line);
            out.println(repetitions > 0 ? Long.toString(leastNanoseconds(asked, repetitions)) : answer(asked));
            if (!in.ready()) // who asks waits for the last answer before it goes on
                out.flush();
        }
        out.flush();
    }

    private static String answer(Case asked) {
        try {
            return new TreeMap<>(asked.place()).entrySet().stream()
                .map(entry -> entry.getKey() + "=" + entry.getValue().stream().map(String::valueOf).collect(Collectors.joining(",")))
                .collect(Collectors.joining(";"));
        } catch (RuntimeException refused) {
            return "!" + refused.getMessage();
        }
    }

    private static long leastNanoseconds(Case asked, int repetitions) {
        long least = Long.MAX_VALUE;
        for (int i = 0; i < repetitions; i++) {
            long begin = System.nanoTime();
            int placed = asked.place().size();
            long end = System.nanoTime();
            if (placed != asked.partitions())
                throw new IllegalStateException(placed + " partitions placed");
            least = Math.min(least, end - begin);
        }
        return least;
    }
}
