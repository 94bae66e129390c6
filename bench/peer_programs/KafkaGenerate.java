import java.io.BufferedWriter;
import java.io.File;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.metadata.placement.UsableBroker;
import org.apache.kafka.tools.reassign.ReassignPartitionsCommand;

/**
 * What kafka-reassign-partitions --generate proposes for a whole cluster, from a file instead of a live one.
 *
 * The tool's generateAssignment asks a cluster for its topics and brokers and hands both to calculateAssignment, which
 * is private and does all of the planning: this program calls it with what the file says, once for all topics.
 * Arguments: the cluster's JSON, and the directory for plan.json and summary.json.
 */
public final class KafkaGenerate {
    private final Map<TopicPartition, List<Integer>> current = new HashMap<>();
    private final Map<Integer, String> racks = new HashMap<>();
    private final Set<Integer> targets = new HashSet<>();

    public static void main(String[] arguments) throws Exception {
        KafkaGenerate cluster = new KafkaGenerate();
        cluster.read(new File(arguments[0]));
        Method calculate = ReassignPartitionsCommand.class.getDeclaredMethod("calculateAssignment", Map.class, List.class);
        calculate.setAccessible(true);
        List<UsableBroker> brokers = cluster.targets.stream().sorted()
            .map(id -> new UsableBroker(id, Optional.ofNullable(cluster.racks.get(id)), false))
            .collect(Collectors.toList());

        long begin = System.nanoTime();
        @SuppressWarnings("unchecked")
        Map<TopicPartition, List<Integer>> proposed = (Map<TopicPartition, List<Integer>>) calculate.invoke(null, cluster.current, brokers);
        double seconds = (System.nanoTime() - begin) / 1e9;

        Path out = Path.of(arguments[1]);
        write(proposed, out.resolve("plan.json"));
        Files.writeString(out.resolve("summary.json"), "{\"timings\": {\"plan\": " + seconds + "}}\n");
    }

    private void read(File file) throws IOException {
        try (JsonParser parser = new JsonFactory().createParser(file)) {
            parser.nextToken();
            while (parser.nextToken() == JsonToken.FIELD_NAME) {
                String field = parser.currentName();
                parser.nextToken();
                switch (field) {
                    case "brokers" -> readBrokers(parser);
                    case "targets" -> targets.addAll(readNumbers(parser));
                    case "partitions" -> readPartitions(parser);
                    default -> parser.skipChildren();
                }
            }
        }
    }

    private void readBrokers(JsonParser parser) throws IOException {
        while (parser.nextToken() == JsonToken.START_OBJECT) {
            int id = -1;
            String rack = null;
            while (parser.nextToken() == JsonToken.FIELD_NAME) {
                String field = parser.currentName();
                parser.nextToken();
                switch (field) {
                    case "id" -> id = parser.getIntValue();
                    case "rack" -> rack = parser.getValueAsString();
                    default -> parser.skipChildren();
                }
            }
            racks.put(id, rack);
        }
    }

    private void readPartitions(JsonParser parser) throws IOException {
        while (parser.nextToken() == JsonToken.START_OBJECT) {
            String topic = null;
            int partition = -1;
            List<Integer> replicas = List.of();
            while (parser.nextToken() == JsonToken.FIELD_NAME) {
                String field = parser.currentName();
                parser.nextToken();
                switch (field) {
                    case "topic" -> topic = parser.getText();
                    case "partition" -> partition = parser.getIntValue();
                    case "replicas" -> replicas = readNumbers(parser);
                    default -> parser.skipChildren();
                }
            }
            current.put(new TopicPartition(topic, partition), replicas);
        }
    }

    private static List<Integer> readNumbers(JsonParser parser) throws IOException {
        List<Integer> numbers = new ArrayList<>();
        while (parser.nextToken() != JsonToken.END_ARRAY)
            numbers.add(parser.getIntValue());
        return numbers;
    }

    private static void write(Map<TopicPartition, List<Integer>> proposed, Path file) throws IOException {
        try (BufferedWriter out = Files.newBufferedWriter(file, StandardCharsets.UTF_8)) {
            out.write("{\"version\":1,\"partitions\":[");
            Iterator<Map.Entry<TopicPartition, List<Integer>>> entries = proposed.entrySet().iterator();
            while (entries.hasNext()) {
                Map.Entry<TopicPartition, List<Integer>> entry = entries.next();
                String replicas = entry.getValue().stream().map(String::valueOf).collect(Collectors.joining(","));
                out.write("{\"topic\":\"" + entry.getKey().topic() + "\",\"partition\":" + entry.getKey().partition()
                    + ",\"replicas\":[" + replicas + "]}" + (entries.hasNext() ? ",\n" : ""));
            }
            out.write("]}\n");
        }
    }
}
