import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Collectors;

import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Asks the assignors of Kafka's clients, one case per line of standard input, one answer per line of standard output.
 *
 * A case, separated by tabs: the assignor's class; topics as {@code a:r1+r2,r2}, the racks of each partition's replicas;
 * members as {@code id;topics;owned;generation;rack;instance}, separated by blanks, topics and owned partitions
 * ({@code a/0}) by plus signs. An answer: {@code m1=a/0+a/1 m2=}, or an exclamation mark and the exception.
 *
 * With {@code time <repetitions>} as arguments each answer is instead the least number of nanoseconds the case took. Runs
 * on clients of 2.4 and of 4: what only the latter know of a subscription is left out for the former.
 */
public final class AssignorReference {
    private static final boolean KNOWS_RACKS = subscriptionConstructor().getParameterCount() == 5;

    private record Case(Class<?> assignor, Cluster cluster, Map<String, Subscription> subscriptions) {
        static Case parse(String line) throws Exception {
            String[] fields = line.split("\t", -1);
            Class<?> assignor = Class.forName("org.apache.kafka.clients.consumer." + fields[0]);
            Map<String, Subscription> subscriptions = new LinkedHashMap<>();
            for (String word : split(fields[2], " ")) {
                String[] parts = word.split(";", -1);
                subscriptions.put(parts[0], subscription(parts, assignor == StickyAssignor.class));
            }
            return new Case(assignor, metadata(fields[1]), subscriptions);
        }

        Map<String, Assignment> assign() throws Exception {
            ConsumerPartitionAssignor assignor = (ConsumerPartitionAssignor) this.assignor.getConstructor().newInstance();
            Map<String, Subscription> given = new HashMap<>();
            for (Map.Entry<String, Subscription> entry : subscriptions.entrySet()) {
                if (entry.getValue().userData() != null)
                    entry.getValue().userData().rewind();
                given.put(entry.getKey(), entry.getValue());
            }
            return assignor.assign(cluster, new GroupSubscription(given)).groupAssignment();
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
            return new TreeMap<>(asked.assign()).entrySet().stream()
                .map(entry -> entry.getKey() + "=" + entry.getValue().partitions().stream()
                    .map(tp -> tp.topic() + "/" + tp.partition()).collect(Collectors.joining("+")))
                .collect(Collectors.joining(" "));
        } catch (Exception failed) {
            return "!" + failed;
        }
    }

    private static long leastNanoseconds(Case asked, int repetitions) throws Exception {
        long least = Long.MAX_VALUE;
        for (int i = 0; i < repetitions; i++) {
            long begun = System.nanoTime();
            asked.assign();
            least = Math.min(least, System.nanoTime() - begun);
        }
        return least;
    }

    private static Cluster metadata(String text) {
        Map<String, Node> nodes = new TreeMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        for (String word : split(text, " ")) {
            int colon = word.indexOf(':');
            String topic = word.substring(0, colon);
            String[] replicas = word.substring(colon + 1).split(",", -1);
            for (int i = 0; i < replicas.length; i++) {
                Node[] on = split(replicas[i], "+").stream()
                    .map(rack -> nodes.computeIfAbsent(rack, r -> new Node(nodes.size(), "host", 9092, r)))
                    .toArray(Node[]::new);
                partitions.add(new PartitionInfo(topic, i, on.length == 0 ? null : on[0], on, on));
            }
        }
        return new Cluster("id", nodes.values(), partitions, Collections.emptySet(), Collections.emptySet());
    }

    private static Subscription subscription(String[] parts, boolean sticky) throws Exception {
        List<String> topics = split(parts[1], "+");
        List<TopicPartition> owned = split(parts[2], "+").stream().map(AssignorReference::partition).collect(Collectors.toList());
        int generation = Integer.parseInt(parts[3]);
        ByteBuffer data = sticky && generation >= 0 ? remembered(topics, owned, generation) : null;
        Subscription made = (Subscription) (KNOWS_RACKS
            ? subscriptionConstructor().newInstance(topics, data, owned, generation, Optional.of(parts[4]).filter(r -> !r.isEmpty()))
            : subscriptionConstructor().newInstance(topics, data, owned));
        if (!parts[5].isEmpty())
            made.setGroupInstanceId(Optional.of(parts[5]));
        return made;
    }

    /** What the sticky assignor sends along when its member joins again. */
    private static ByteBuffer remembered(List<String> topics, List<TopicPartition> owned, int generation) {
        StickyAssignor member = new StickyAssignor();
        member.onAssignment(new Assignment(owned), new ConsumerGroupMetadata("group", generation, "member", Optional.empty()));
        return member.subscriptionUserData(new HashSet<>(topics));
    }

    private static Constructor<?> subscriptionConstructor() {
        return Arrays.stream(Subscription.class.getConstructors())
            .max((one, other) -> one.getParameterCount() - other.getParameterCount()).get();
    }

    private static TopicPartition partition(String word) {
        int slash = word.lastIndexOf('/');
        return new TopicPartition(word.substring(0, slash), Integer.parseInt(word.substring(slash + 1)));
    }

    private static List<String> split(String text, String separator) {
        return text.isEmpty() ? List.of() : Arrays.asList(text.split(java.util.regex.Pattern.quote(separator)));
    }
}
