import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Collectors;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.OptionalStringComparator;
import org.apache.kafka.metadata.placement.ClusterDescriber;
import org.apache.kafka.metadata.placement.PlacementSpec;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.metadata.placement.UsableBroker;

/**
 * Asks Kafka's StripedReplicaPlacer, one case per line of standard input, one answer per line of standard output.
 *
 * A case: partitions, replication factor, what is drawn and the brokers, separated by tabs; brokers as {@code id} or
 * {@code id=rack}, separated by commas, with a {@code !} before the id if fenced. An answer: {@code 3,1,2;1,2,0}, or an
 * exclamation mark and the message of the exception.
 *
 * What is drawn stands in the order in which racks sort by name. Kafka visits the racks in the order of a hash map, so
 * the numbers are dealt out in that order here; a number drawn for a bound is taken modulo the bound, and 0 is drawn
 * after the last number.
 */
public final class StripedReplicaPlacerReference {
    private static final class Scripted extends Random {
        private final Iterator<Integer> numbers;

        Scripted(Iterator<Integer> numbers) {
            this.numbers = numbers;
        }

        @Override
        public int nextInt(int bound) {
            return numbers.hasNext() ? numbers.next() % bound : 0;
        }
    }

    private record Cluster(List<UsableBroker> brokers) implements ClusterDescriber {
        @Override
        public Iterator<UsableBroker> usableBrokers() {
            return brokers.iterator();
        }

        @Override
        public Uuid defaultDir(int broker) {
            return Uuid.ZERO_UUID;
        }
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(line.split("\t", -1)));
            if (!in.ready()) // who asks waits for the last answer before it goes on
                out.flush();
        }
        out.flush();
    }

    private static String answer(String[] fields) {
        List<Integer> drawn = Arrays.stream(fields[2].split(",")).filter(word -> !word.isEmpty()).map(Integer::valueOf).toList();
        List<UsableBroker> brokers = new ArrayList<>();
        for (String word : fields[3].isEmpty() ? new String[0] : fields[3].split(",")) {
            boolean fenced = word.startsWith("!");
            String[] idAndRack = word.substring(fenced ? 1 : 0).split("=", 2);
            Optional<String> rack = idAndRack.length == 2 ? Optional.of(idAndRack[1]) : Optional.empty();
            brokers.add(new UsableBroker(Integer.parseInt(idAndRack[0]), rack, fenced));
        }
        PlacementSpec spec = new PlacementSpec(0, Integer.parseInt(fields[0]), Short.parseShort(fields[1]));
        StripedReplicaPlacer placer = new StripedReplicaPlacer(new Scripted(inHashOrder(drawn, brokers).iterator()));
        try {
            return placer.place(spec, new Cluster(brokers)).assignments().stream()
                .map(partition -> partition.replicas().stream().map(String::valueOf).collect(Collectors.joining(",")))
                .collect(Collectors.joining(";"));
        } catch (RuntimeException refused) {
            return "!" + refused.getMessage();
        }
    }

    private static List<Integer> inHashOrder(List<Integer> drawn, List<UsableBroker> brokers) {
        Map<Optional<String>, int[]> sizes = new HashMap<>();
        for (UsableBroker broker : brokers) {
            // computeIfAbsent would let the table grow at another size than put, and so change the order
            if (!sizes.containsKey(broker.rack()))
                sizes.put(broker.rack(), new int[2]);
            sizes.get(broker.rack())[broker.fenced() ? 0 : 1]++;
        }
        Map<Optional<String>, int[]> byName = new TreeMap<>(OptionalStringComparator.INSTANCE);
        byName.putAll(sizes);

        List<Integer> dealt = new ArrayList<>();
        Iterator<Integer> rest = drawn.iterator();
        Map<Optional<String>, List<Integer>> offsets = new HashMap<>();
        byName.forEach((rack, size) -> offsets.put(rack, take(rest, Math.min(size[0], 1) + Math.min(size[1], 1))));
        sizes.keySet().forEach(rack -> dealt.addAll(offsets.get(rack)));
        dealt.addAll(take(rest, Math.min(sizes.size(), 1)));
        int before = -1;
        while (rest.hasNext() && dealt.size() > before) {
            before = dealt.size();
            dealt.addAll(take(rest, sizes.size() - 1));
            Map<Optional<String>, List<Integer>> shuffles = new HashMap<>();
            byName.forEach((rack, size) -> shuffles.put(rack, take(rest, Math.max(size[0] - 1, 0) + Math.max(size[1] - 1, 0))));
            sizes.keySet().forEach(rack -> dealt.addAll(shuffles.get(rack)));
        }
        return dealt;
    }

    private static List<Integer> take(Iterator<Integer> numbers, int count) {
        List<Integer> taken = new ArrayList<>();
        while (taken.size() < count && numbers.hasNext())
            taken.add(numbers.next());
        return taken;
    }
}
