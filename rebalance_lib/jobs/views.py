"""What a plan does to a cluster, as SQL: the views that `invariants` ask.

`checks` loads the tables replicas, registered, entries, unreadable, told, told_brokers, files and moves. On them:

    placed       replicas that hold data now, with the bytes that the planner counts for them
    homes        the broker set of each topic, '' for that of brokers in no set
    topics       how many partitions each has, and whether the request lets them change
    brokers      what each holds, and what the request makes of it
    held         the replicas of each partition
    changes      each entry of a plan beside the replicas as they are
    slots        a row for each broker that such a partition is on, before or after
    tally        what comes to and goes from each broker and log dir
    and others   sums of these, beside what the files say

What the request says is filled in for ``:mode``, ``:brokers`` and so on.

Example: ``foo-0`` goes from [1, 2] to [1, 3]. It is one row of changes and three of slots: broker 1 stays and leads,
2 goes, 3 comes. Tally has -1 replica for broker 2, and +1 for broker 3 with the bytes of the leader.
"""

from __future__ import annotations

PLACED = """
    SELECT run, topic, partition, position, broker, leader, internal, size_bytes, log_dir,
        size_bytes AS bytes, position = 0 AS preferred
    FROM replicas"""
PLACED_WITH_GAPS = """
    SELECT /*+ BROADCAST(odd) */ run, topic, partition, position, broker, leader, internal, size_bytes, log_dir,
        coalesce(size_bytes, largest, 0) AS bytes, position = coalesce(first, 0) AS preferred
    FROM replicas LEFT JOIN (
        SELECT run, topic, partition, max(size_bytes) AS largest, min(position) AS first
        FROM replicas LEFT SEMI JOIN (
            SELECT DISTINCT run, topic, partition FROM replicas WHERE adding OR size_bytes IS NULL
        ) USING (run, topic, partition)
        WHERE NOT adding
        GROUP BY run, topic, partition
    ) AS odd USING (run, topic, partition)
    WHERE NOT adding"""
ODD = """
    -- whether replicas are being added or lack a size, and all broker sets
    (SELECT run, CAST(NULL AS STRING) AS broker_set, CAST(NULL AS ARRAY<STRING>) AS patterns FROM replicas
        WHERE adding OR size_bytes IS NULL LIMIT 1)
    UNION ALL
    SELECT run, broker_set, any_value(broker_set_topics) FROM registered WHERE broker_set IS NOT NULL
    GROUP BY run, broker_set"""
NO_HOMES = "SELECT run, topic, '' AS home FROM placed GROUP BY run, topic"
HOMES = """
    SELECT run, topic, coalesce(named, voted, '') AS home
    FROM (
        SELECT run, topic, max_by(home, struct(votes, -first)) AS voted
        FROM (
            SELECT run, topic, coalesce(broker_set, '') AS home, count(alive) AS votes
            FROM placed LEFT JOIN registered USING (run, broker) GROUP BY ALL
        ) LEFT JOIN (
            SELECT run, coalesce(broker_set, '') AS home, min(broker) AS first FROM registered GROUP BY ALL
        ) USING (run, home)
        GROUP BY run, topic
    ) LEFT JOIN (
        SELECT run, topic, any_value(broker_set) AS named
        FROM (SELECT DISTINCT run, topic FROM placed) JOIN set_patterns USING (run)
        WHERE topic RLIKE pattern GROUP BY run, topic
    ) USING (run, topic)"""
OF_SNAPSHOTS = {
    "topics": """
        SELECT run, topic, count_if(preferred) AS partitions, count_if(partition = 0) AS factor,
            if(size(:topics) > 0, exists(:topics, pattern -> topic RLIKE pattern),
                :include_internal OR :mode IN ('drain', 'replace', 'repair', 'demote', 'drain-log-dirs')
                    OR NOT bool_or(internal))
                AND NOT exists(:excluded_topics, pattern -> topic RLIKE pattern) AS chosen,
            any_value(home) AS home
        FROM placed JOIN homes USING (run, topic) GROUP BY run, topic""",
    "brokers": """
        SELECT run, broker, rack, coalesce(alive, false) AS alive, coalesce(log_dirs, array()) AS log_dirs,
            if(alive IS NULL, NULL, coalesce(broker_set, '')) AS broker_set,
            array_contains(:excluded_brokers, broker) AS excluded,
            :mode = 'drain' AND array_contains(:brokers, broker) AS leaving,
            coalesce(alive, false) AND NOT coalesce(cordoned, false) AND NOT array_contains(:excluded_brokers, broker)
                AND (size(:allowed_brokers) = 0 OR array_contains(:allowed_brokers, broker))
                AND CASE :mode WHEN 'drain' THEN NOT array_contains(:brokers, broker)
                    WHEN 'replace' THEN array_contains(:replacements, broker)
                    WHEN 'expand' THEN if(size(:brokers) > 0, array_contains(:brokers, broker), replicas IS NULL)
                    ELSE true END AS takes,
            coalesce(replicas, 0) AS replicas, coalesce(bytes, 0) AS bytes, coalesce(leaders, 0) AS leaders
        FROM registered FULL JOIN (
            SELECT run, broker, count(*) AS replicas, sum(bytes) AS bytes, count_if(preferred) AS leaders
            FROM placed GROUP BY run, broker
        ) USING (run, broker)""",
    "broker_racks": """
        -- brokers beside the rack that counts for their replicas, if one does, and their log dir, if they have just one
        SELECT run, broker, takes, excluded, leaving, alive, broker_set, log_dirs.path AS paths,
            if(size(log_dirs) = 1, get(log_dirs, 0).path, NULL) AS dir,
            if(alive AND racked AND counts, rack, NULL) AS rack
        FROM brokers
            JOIN (SELECT run, NOT bool_or(alive AND rack IS NULL) AS racked FROM brokers GROUP BY run) USING (run)
            LEFT JOIN (SELECT run, broker_set, rack, bool_or(alive AND NOT leaving) AS counts FROM brokers
                GROUP BY run, broker_set, rack) USING (run, broker_set, rack)""",
    "rack_sizes": """
        -- how many brokers of a set each rack has once those to be drained have left
        SELECT run, broker_set AS home, collect_list(brokers) AS rack_sizes
        FROM (SELECT run, broker_set, rack, count(*) AS brokers FROM broker_racks
            WHERE rack IS NOT NULL AND alive AND NOT leaving GROUP BY run, broker_set, rack)
        GROUP BY run, broker_set""",
    "held": """
        SELECT run, topic, partition, sort_array(collect_list(struct(position, broker, bytes, log_dir))) AS held,
            coalesce(max(size_bytes) FILTER (WHERE leader), max(size_bytes), 0) AS copy
        FROM placed GROUP BY run, topic, partition""",
    "dirs": """
        SELECT run, broker, dir.path AS log_dir, dir.usable_bytes - ceil(dir.total_bytes * (1 - :max_fill)) AS free
        FROM brokers LATERAL VIEW explode(log_dirs) AS dir""",
}
OF_CHANGES = {
    "changes": """
        SELECT /*+ BROADCAST(topics) */ run, candidate, entry, topic, partition, concat(topic, '-', partition) AS name,
            replicas, log_dirs, coalesce(held, array()) AS held, held IS NOT NULL AS known, coalesce(copy, 0) AS copy,
            coalesce(held.broker, array()) AS before, chosen, partitions, factor, coalesce(home, '') AS home,
            held IS NOT NULL AND array_sort(held.broker) <> array_sort(replicas) AS moves
        FROM entries LEFT JOIN held USING (run, topic, partition) LEFT JOIN topics USING (run, topic)""",
    "slots": """
        SELECT /*+ BROADCAST(broker_racks) */ run, candidate, entry, name, copy, moves, broker, was, leads, led,
            nullif(named, 'any') AS named, takes, excluded, leaving, alive, dir, paths, was IS NULL AS comes, goes,
            if(home = broker_set, rack, NULL) AS rack, home <> broker_set AS outside
        FROM (
            SELECT run, candidate, entry, name, copy, moves, home, broker,
                get(held, CAST(array_position(before, broker) AS INT) - 1) AS was,
                get(log_dirs, CAST(array_position(replicas, broker) AS INT) - 1) AS named,
                NOT array_contains(replicas, broker) AS goes,
                broker <=> get(replicas, 0) AS leads, broker <=> get(before, 0) AS led
            FROM changes LATERAL VIEW explode(array_union(before, replicas)) AS broker
        ) LEFT JOIN broker_racks USING (run, broker)""",
    "tally": """
        -- a replica that stays leaves its log dir and comes to one, mostly the same
        SELECT run, candidate, broker, log_dir, sum(bytes) AS bytes, bool_or(arrives) AS receives,
            sum(replicas) AS replicas, sum(leaders) AS leaders, count_if(copied) AS copies,
            coalesce(sum(bytes) FILTER (WHERE copied), 0) AS copied
        FROM (
            SELECT run, candidate, broker, was.log_dir AS log_dir, -was.bytes AS bytes, false AS arrives,
                false AS copied, -int(goes) AS replicas, -int(led) AS leaders
            FROM slots WHERE NOT comes
            UNION ALL
            SELECT run, candidate, broker, coalesce(named, if(comes, dir, was.log_dir)), if(comes, copy, was.bytes),
                comes OR named IS NOT NULL AND named IS DISTINCT FROM was.log_dir, comes, int(comes), int(leads)
            FROM slots WHERE NOT goes)
        GROUP BY run, candidate, broker, log_dir""",
    "dir_loads": """
        SELECT run, candidate, broker, log_dir, bytes, free, receives
        FROM tally JOIN dirs USING (run, broker, log_dir)""",
    "broker_loads": """
        -- what goes from a log dir that is not known frees none that is
        SELECT run, candidate, broker, sum(if(log_dir IS NULL, greatest(bytes, 0), bytes)) AS bytes,
            bool_or(receives) AS receives, any_value(free) AS free
        FROM tally JOIN (
            SELECT run, broker, sum(free) AS free FROM dirs GROUP BY run, broker HAVING count(*) = count(free)
        ) USING (run, broker)
        GROUP BY run, candidate, broker""",
    "spread": """
        -- a drain may leave so few brokers in the other racks that one must hold more replicas than the fullest did
        SELECT /*+ BROADCAST(rack_sizes) */ run, candidate, name, racked.*,
            if(:mode = 'drain', coalesce(get(filter(sequence(1, int(after)),
                most -> aggregate(rack_sizes, 0L, (sum, n) -> sum + least(n, most)) >= after), 0), after), 0) AS forced
        FROM (
            SELECT entry, sum(after) AS after, sum(before) AS before,
                count_if(rack IS NOT NULL AND after > 0) AS racks,
                count_if(rack IS NOT NULL AND before > 0) AS racks_before,
                max(after) FILTER (WHERE rack IS NOT NULL) AS fullest,
                max(before) FILTER (WHERE rack IS NOT NULL) AS fullest_before,
                coalesce(sum(before) FILTER (WHERE rack IS NULL), 0) AS without_rack
            FROM (
                SELECT entry, rack, count_if(NOT goes) AS after, count_if(NOT comes) AS before
                FROM (SELECT entry, rack, goes, comes FROM slots WHERE moves DISTRIBUTE BY entry)
                GROUP BY entry, rack)
            GROUP BY entry
        ) AS racked JOIN changes USING (entry) LEFT JOIN rack_sizes USING (run, home)""",
    "leadership": """
        -- whether excluded brokers lose or get the lead of a partition, and whether another broker could have it
        SELECT run, candidate, name, bool_or(excluded AND led AND NOT leads) AS loses,
            bool_or(excluded AND leads AND NOT led) AS gets,
            bool_or(NOT goes AND alive AND NOT excluded AND NOT leaving) AS others
        FROM slots WHERE size(:excluded_brokers) > 0
        GROUP BY run, candidate, entry, name""",
    "entered": """
        SELECT run, candidate, topic, partition, count(*) AS times FROM entries
        GROUP BY run, candidate, topic, partition""",
    "added": """
        SELECT run, candidate, topic, bool_or(known) AS known, min(partition) AS first, max(partition) AS last,
            count(*) AS number, any_value(partitions) AS partitions
        FROM changes WHERE :mode = 'partitions' GROUP BY run, candidate, topic""",
    "forgotten": """
        -- replicas of chosen topics that had to leave, of partitions that the plan does not name
        SELECT run, candidate, concat(topic, '-', partition) AS name, broker
        FROM (
            SELECT run, topic, partition, broker
            FROM placed JOIN brokers USING (run, broker) JOIN topics USING (run, topic)
            WHERE chosen AND (:mode = 'drain' AND leaving OR :mode = 'repair' AND NOT alive AND NOT excluded)
        ) JOIN told USING (run) LEFT ANTI JOIN entries USING (run, candidate, topic, partition)""",
    "counted": """
        SELECT run, candidate,
            struct(coalesce(partitions, 0) AS partitions_changed, coalesce(copies, 0) AS replicas_moved,
                coalesce(copied, 0) AS bytes_moved, coalesce(leaders, 0) AS leaders_moved) AS found,
            struct(partitions_changed, replicas_moved, bytes_moved, leaders_moved) AS said
        FROM told LEFT JOIN (
            SELECT run, candidate, count(*) AS partitions,
                count_if(known AND NOT get(before, 0) <=> get(replicas, 0)) AS leaders
            FROM changes GROUP BY run, candidate
        ) USING (run, candidate) LEFT JOIN (
            SELECT run, candidate, sum(copies) AS copies, sum(copied) AS copied FROM tally GROUP BY run, candidate
        ) USING (run, candidate)""",
    "afterwards": """
        SELECT run, candidate, broker, struct(said.bytes, said.replicas, said.leaders) AS said,
            struct(brokers.bytes + coalesce(delta.bytes, 0) AS bytes,
                brokers.replicas + coalesce(delta.replicas, 0) AS replicas,
                brokers.leaders + coalesce(delta.leaders, 0) AS leaders) AS found
        FROM told_brokers AS said LEFT JOIN brokers USING (run, broker) LEFT JOIN (
            SELECT run, candidate, broker, sum(bytes) AS bytes, sum(replicas) AS replicas, sum(leaders) AS leaders
            FROM tally GROUP BY run, candidate, broker
        ) AS delta USING (run, candidate, broker)""",
    "copied": """
        SELECT run, candidate, found, coalesce(copies, 0) AS copies, coalesce(bytes, 0) AS bytes
        FROM counted JOIN recommended USING (run, candidate)
            LEFT JOIN (SELECT run, count(*) AS copies, sum(bytes) AS bytes FROM moves GROUP BY run) USING (run)""",
    "digests": "SELECT run, candidate, digest, found FROM told JOIN files USING (run, candidate)",
}
KEPT = ("topics", "brokers", "broker_racks", "rack_sizes", "held", "changes", "tally", "counted")
