"""What a plan does to a cluster, as SQL: the views that `invariants` ask.

`checks` loads the tables of `files`: registered, loads, topic_sizes, set_replicas, unplanned, entries, topic_entries,
slots, rack_slots, plans, files and brokers_after. On them:

    homes              the broker set of each topic, '' for that of brokers in no set
    topics             how many partitions each has, and whether the request lets them change
    brokers            what each holds, what the request makes of it, and the rack that counts for its replicas
    topic_changes      the entries of a plan by topic
    broker_slots       its slots beside their brokers
    tally              what comes to and goes from each broker and log dir
    and others         sums of these, beside what the files say

What the request says is filled in for ``:mode``, ``:brokers`` and so on.

Example: of broker 2 a replica with 10 bytes goes to broker 3. Tally has -1 replica and -10 bytes for broker 2, and +1
for broker 3 with the bytes of the leader.
"""

from __future__ import annotations

ONE_SET = {
    "slot_homes": "SELECT *, '' AS home FROM slots",
    "rack_slot_homes": "SELECT *, '' AS home FROM rack_slots",
}
BROKER_SETS = {
    "homes": """
        SELECT run, topic, coalesce(named, most, '') AS home
        FROM (
            SELECT run, topic, max_by(broker_set, struct(number, -first)) AS most
            FROM (SELECT run, topic, broker_set, sum(number) AS number FROM set_replicas GROUP BY ALL)
                JOIN (SELECT run, coalesce(broker_set, '') AS broker_set, min(broker) AS first
                    FROM registered GROUP BY ALL) USING (run, broker_set)
            GROUP BY run, topic
        ) FULL JOIN (
            SELECT run, topic, any_value(broker_set) AS named
            FROM (SELECT DISTINCT run, topic FROM topic_sizes) JOIN (
                SELECT run, broker_set, explode(broker_set_topics) AS pattern FROM registered
            ) USING (run)
            WHERE topic RLIKE pattern GROUP BY run, topic
        ) USING (run, topic)""",
    "slot_homes": "SELECT slots.*, coalesce(home, '') AS home FROM slots LEFT JOIN homes USING (run, topic)",
    "rack_slot_homes": """
        SELECT rack_slots.*, coalesce(home, '') AS home FROM rack_slots LEFT JOIN homes USING (run, topic)""",
}
OF_CLUSTERS = {
    "topics": """
        SELECT run, topic, sum(partitions) AS partitions, sum(factor) AS factor,
            if(size(:topics) > 0, exists(:topics, pattern -> topic RLIKE pattern),
                :include_internal OR :mode IN ('drain', 'replace', 'repair', 'demote', 'drain-log-dirs')
                    OR NOT bool_or(internal))
                AND NOT exists(:excluded_topics, pattern -> topic RLIKE pattern) AS chosen
        FROM topic_sizes GROUP BY run, topic""",
    "brokers": """
        -- Racks count if all live brokers have one, and as long as a live broker of the set that stays is in them.
        SELECT run, broker, alive, excluded, leaving, takes, broker_set, log_dirs.path AS paths,
            if(size(log_dirs) = 1, get(log_dirs, 0).path, NULL) AS dir, log_dirs, replicas, bytes, leaders,
            if(alive AND NOT bool_or(alive AND rack IS NULL) OVER (PARTITION BY run)
                AND bool_or(alive AND NOT leaving) OVER (PARTITION BY run, broker_set, rack), rack, NULL) AS rack
        FROM (
            SELECT run, broker, rack, coalesce(alive, false) AS alive, coalesce(log_dirs, array()) AS log_dirs,
                if(alive IS NULL, NULL, coalesce(broker_set, '')) AS broker_set,
                array_contains(:excluded_brokers, broker) AS excluded,
                :mode = 'drain' AND array_contains(:brokers, broker) AS leaving,
                coalesce(alive, false) AND NOT coalesce(cordoned, false)
                    AND NOT array_contains(:excluded_brokers, broker)
                    AND (size(:allowed_brokers) = 0 OR array_contains(:allowed_brokers, broker))
                    AND CASE :mode WHEN 'drain' THEN NOT array_contains(:brokers, broker)
                        WHEN 'replace' THEN array_contains(:replacements, broker)
                        WHEN 'expand' THEN if(size(:brokers) > 0, array_contains(:brokers, broker), replicas IS NULL)
                        ELSE true END AS takes,
                coalesce(replicas, 0) AS replicas, coalesce(bytes, 0) AS bytes, coalesce(leaders, 0) AS leaders
            FROM registered FULL JOIN (
                SELECT run, broker, sum(replicas) AS replicas, sum(bytes) AS bytes, sum(leaders) AS leaders
                FROM loads GROUP BY run, broker
            ) USING (run, broker))""",
    "dirs": """
        SELECT run, broker, path AS log_dir, usable - ceil(total * (1 - :max_fill)) AS free
        FROM (SELECT run, broker, inline(log_dirs) FROM brokers)""",
}
OF_CHANGES = {
    "changes": "SELECT entries.*, factor FROM entries LEFT JOIN topics USING (run, topic)",
    "topic_changes": """
        SELECT topic_entries.*, chosen, partitions FROM topic_entries LEFT JOIN topics USING (run, topic)""",
    "broker_slots": """
        SELECT run, candidate, broker, comes, goes, leads, led, log_dir, named, slot_homes.bytes AS bytes, copied,
            number, first, others_may_lead, takes, excluded, leaving, alive, dir, paths, home <> broker_set AS outside
        FROM slot_homes LEFT JOIN brokers USING (run, broker)""",
    "tally": """
        -- a replica that stays leaves its log dir and comes to one, mostly the same
        SELECT run, candidate, broker, log_dir, sum(bytes) AS bytes, bool_or(arrives) AS receives,
            sum(replicas) AS replicas, sum(leaders) AS leaders, sum(copies) AS copies, sum(copied) AS copied
        FROM (
            SELECT run, candidate, broker, log_dir, -bytes AS bytes, false AS arrives, 0L AS copies, 0L AS copied,
                if(goes, -number, 0) AS replicas, if(led, -number, 0) AS leaders
            FROM broker_slots WHERE NOT comes
            UNION ALL
            SELECT run, candidate, broker, coalesce(named, if(comes, dir, log_dir)), bytes + copied,
                comes OR named IS NOT NULL AND named IS DISTINCT FROM log_dir, if(comes, number, 0), copied,
                if(comes, number, 0), if(leads, number, 0)
            FROM broker_slots WHERE NOT goes)
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
    "spreads": """
        -- racks of the partitions that move
        SELECT run, candidate, any_value(first) AS first, any_value(number) AS number, any_value(home) AS home,
            sum(after) AS after, sum(before) AS before,
            count_if(rack IS NOT NULL AND after > 0) AS racks,
            count_if(rack IS NOT NULL AND before > 0) AS racks_before,
            max(after) FILTER (WHERE rack IS NOT NULL) AS fullest,
            max(before) FILTER (WHERE rack IS NOT NULL) AS fullest_before,
            coalesce(sum(before) FILTER (WHERE rack IS NULL), 0) AS without_rack
        FROM (
            SELECT run, candidate, spread, if(home = broker_set, rack, NULL) AS rack, any_value(first) AS first,
                any_value(number) AS number, any_value(home) AS home, sum(after) AS after, sum(before) AS before
            FROM rack_slot_homes LEFT JOIN brokers USING (run, broker)
            GROUP BY run, candidate, spread, if(home = broker_set, rack, NULL))
        GROUP BY run, candidate, spread""",
    "forced_spreads": """
        -- a drain may leave so few brokers in the other racks that one must hold more replicas than the fullest did
        SELECT spreads.*, coalesce(get(filter(sequence(1, int(after)),
            most -> aggregate(rack_sizes, 0L, (sum, n) -> sum + least(n, most)) >= after), 0), after) AS forced
        FROM spreads LEFT JOIN (
            SELECT run, broker_set AS home, collect_list(brokers) AS rack_sizes
            FROM (SELECT run, broker_set, rack, count(*) AS brokers FROM brokers
                WHERE rack IS NOT NULL AND alive AND NOT leaving GROUP BY run, broker_set, rack)
            GROUP BY run, broker_set
        ) USING (run, home)""",
    "added": """
        SELECT run, candidate, topic, any_value(first) AS first, sum(number) AS number, bool_or(known) AS known,
            min(lowest) AS lowest, max(highest) AS highest, any_value(partitions) AS partitions
        FROM topic_changes GROUP BY run, candidate, topic""",
    "forgotten": """
        -- replicas of chosen topics that had to leave, of partitions that the plan does not name
        SELECT run, candidate, broker, first, number
        FROM unplanned JOIN brokers USING (run, broker) JOIN topics USING (run, topic)
        WHERE chosen AND (:mode = 'drain' AND leaving OR :mode = 'repair' AND NOT alive AND NOT excluded)""",
    "counted": """
        SELECT run, candidate, struct(partitions_changed, replicas_moved, bytes_moved, leaders_moved) AS said,
            struct(coalesce(changed, 0) AS partitions_changed, coalesce(replicas, 0) AS replicas_moved,
                coalesce(bytes, 0) AS bytes_moved, coalesce(leaders, 0) AS leaders_moved) AS found,
            copies, copied
        FROM plans LEFT JOIN (
            SELECT run, candidate, sum(number) AS changed,
                sum(number) FILTER (WHERE known AND leader_changes) AS leaders
            FROM entries GROUP BY run, candidate
        ) USING (run, candidate) LEFT JOIN (
            SELECT run, candidate, sum(copies) AS replicas, sum(copied) AS bytes FROM tally GROUP BY run, candidate
        ) USING (run, candidate)""",
    "afterwards": """
        SELECT run, candidate, broker, struct(said.bytes, said.replicas, said.leaders) AS said,
            struct(brokers.bytes + coalesce(delta.bytes, 0) AS bytes,
                brokers.replicas + coalesce(delta.replicas, 0) AS replicas,
                brokers.leaders + coalesce(delta.leaders, 0) AS leaders) AS found
        FROM brokers_after AS said LEFT JOIN brokers USING (run, broker) LEFT JOIN (
            SELECT run, candidate, broker, sum(bytes) AS bytes, sum(replicas) AS replicas, sum(leaders) AS leaders
            FROM tally GROUP BY run, candidate, broker
        ) AS delta USING (run, candidate, broker)""",
}
PERSISTED = ("brokers", "tally")
