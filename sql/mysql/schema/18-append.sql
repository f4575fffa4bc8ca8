-- changeset attributes: endDelimiter:// stripComments:false runOnChange:true
-- Appends events to one stream, for programs in any language, under the rules
-- of the host's own append. Applied once for the shared table, as
-- moontide_append, and as append_TABLE for each aggregate type that has a
-- table of its own.
--
--   CALL moontide_append('bank.account', 'A-1', 'any',
--       '[{"type": "account.Opened", "payload": {"iban": "DE00"}}]')
--
-- expected    'any', 'none' (the stream has no event yet), or the sequence
--             number of its last event
-- events      a JSON array of objects: type and payload, and if wanted
--             metadata (an object), id (a UUID), revision (0) and occurred_at
--             (RFC 3339; now). Payload and metadata are kept byte for byte.
--
-- Gives one row per event: id, sequence_no, global_position and repeated.
-- Events whose ids are stored already with the same content are not written
-- again but repeated, so a call whose outcome is unknown may be made again.
--
-- It belongs to the caller's transaction, and is one by itself where there is
-- none. The position counter is locked until that ends: append last, and
-- commit soon. Every refusal has SQLSTATE 45000, and the caller rolls back.
-- ignoreLines:1
DELIMITER //

CREATE OR REPLACE PROCEDURE ${append_routine}(
    IN wanted_type LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin,
    IN wanted_id LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin,
    IN expected LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin,
    IN events LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin)
    MODIFIES SQL DATA
BEGIN
    DECLARE alone BOOLEAN DEFAULT @@autocommit = 1 AND @@in_transaction = 0;
    DECLARE fault VARCHAR(500) CHARACTER SET utf8mb4
        COLLATE utf8mb4_nopad_bin;
    DECLARE written_at DATETIME(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE event_count, fresh, place, byte_count INT DEFAULT 0;
    DECLARE hash BIGINT UNSIGNED DEFAULT 2166136261;
    DECLARE partition_count INT;
    DECLARE counter, mark, last_sequence BIGINT;

    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        IF alone THEN
            ROLLBACK;
        END IF;
        RESIGNAL;
    END;

    -- The stream and the document as a whole.
    SET fault = CASE
        WHEN COALESCE(CHAR_LENGTH(wanted_type), 0) NOT BETWEEN 1 AND 255 THEN
            'aggregate_type takes 1 to 255 characters'
        WHEN COALESCE(CHAR_LENGTH(wanted_id), 0) NOT BETWEEN 1 AND 255 THEN
            'aggregate_id takes 1 to 255 characters'
        WHEN LOCATE(CHAR(0), wanted_type) > 0 OR LOCATE(CHAR(0), wanted_id) > 0
        THEN
            'aggregate_type or aggregate_id contains a NUL character'
        WHEN expected IS NULL OR expected NOT REGEXP
             '^(any|none|0|[1-9][0-9]{0,17})$' THEN
            'expected is any, none or the sequence number of the last event'
        WHEN NOT COALESCE(JSON_VALID(events), 0) THEN
            CONCAT('events is not valid JSON, or nested more than 30 levels',
                   ' deep, which this server cannot read')
        -- What the server's own check lets through: "1.", "1e", "-", unknown
        -- escapes, halves of surrogate pairs. ~ stands for a backslash, which
        -- is a letter or an escape by the mode of the session.
        WHEN events NOT REGEXP REPLACE(CONCAT(
             '^(?>[^".eE-]++|[.-](?=[0-9])|(?<![0-9])e|[eE](?=[+-]?[0-9])',
             '|"(?>[^"~~]++|~~["~~/bfnrt]|~~u(?![dD][89a-fA-F])',
             '|~~u[dD][89abAB]..~~u[dD][c-fC-F])*+")*+$'), '~', CHAR(92)) THEN
            'events has a number or an escape that is not valid JSON'
        WHEN JSON_TYPE(events) <> 'ARRAY' THEN
            'events is not a JSON array'
        END;
    IF fault IS NOT NULL THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = fault;
    END IF;

    -- The first event that breaks a rule.
    SELECT COUNT(*), MIN(CASE
               WHEN LEFT(e.element, 1) <> '{' THEN
                   CONCAT(LPAD(e.n, 9, '0'), 'it is not an object')
               WHEN e.type IS NULL OR LEFT(e.type, 1) <> '"'
                    OR CHAR_LENGTH(JSON_VALUE(e.element, '$.type'))
                       NOT BETWEEN 1 AND 255
                    OR LOCATE(CHAR(0), JSON_VALUE(e.element, '$.type')) > 0
               THEN
                   CONCAT(LPAD(e.n, 9, '0'),
                          'type takes 1 to 255 characters and no NUL')
               WHEN e.payload IS NULL THEN
                   CONCAT(LPAD(e.n, 9, '0'), 'payload is missing')
               WHEN LEFT(e.metadata, 1) NOT IN ('{', 'n') THEN
                   CONCAT(LPAD(e.n, 9, '0'), 'metadata is not a JSON object')
               WHEN e.id NOT REGEXP CONCAT('^("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4})',
                    '{3}-[0-9a-fA-F]{12}"|null)$') THEN
                   CONCAT(LPAD(e.n, 9, '0'), 'id is not a UUID')
               WHEN e.revision NOT REGEXP '^(0|[1-9][0-9]{0,9})$'
                    OR e.revision + 0 > 2147483647 THEN
                   CONCAT(LPAD(e.n, 9, '0'),
                          'revision is not a whole number from 0 on')
               WHEN e.occurred_at <> 'null'
                    AND (e.occurred_at NOT REGEXP CONCAT(
                             '^"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:',
                             '[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?',
                             '([Zz]|[+-][0-9]{2}:[0-9]{2})"$')
                         OR CAST(CONCAT(SUBSTR(e.occurred_at, 2, 10), ' ',
                                        SUBSTR(e.occurred_at, 13, 8))
                                 AS DATETIME) IS NULL) THEN
                   CONCAT(LPAD(e.n, 9, '0'), 'occurred_at is not a time like ',
                          '2026-01-31T08:15:00.000000Z')
               WHEN JSON_LENGTH(e.element) <>
                    (e.type IS NOT NULL) + (e.payload IS NOT NULL)
                    + (e.metadata IS NOT NULL) + (e.id IS NOT NULL)
                    + (e.revision IS NOT NULL) + (e.occurred_at IS NOT NULL)
               THEN
                   CONCAT(LPAD(e.n, 9, '0'), 'it has an unknown field, or one',
                          ' twice')
               END)
      INTO event_count, fault
      FROM JSON_TABLE(events, '$[*]' COLUMNS (
               n FOR ORDINALITY,
               element JSON PATH '$',
               type JSON PATH '$.type',
               payload JSON PATH '$.payload',
               metadata JSON PATH '$.metadata',
               id JSON PATH '$.id',
               revision JSON PATH '$.revision',
               occurred_at JSON PATH '$.occurred_at')) AS e;
    IF fault IS NOT NULL THEN
        SET fault = CONCAT('event ', LEFT(fault, 9) + 0, ': ',
                           SUBSTR(fault, 10));
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = fault;
    END IF;

    -- FNV-1a over the bytes of the id, as everywhere.
    SET byte_count = OCTET_LENGTH(wanted_id);
    WHILE place < byte_count DO
        SET place = place + 1;
        SET hash = ((hash ^ ORD(SUBSTR(CAST(wanted_id AS BINARY), place, 1)))
                    * 16777619) & 4294967295;
    END WHILE;

    IF alone THEN
        START TRANSACTION;
    END IF;
    -- From here on no other writer appends, and locking reads see what the
    -- last one committed, whatever view the caller's transaction has.
    SELECT val INTO counter
      FROM ${event_store_global_position_table} WHERE id = 1 FOR UPDATE;
    SELECT partitions INTO partition_count
      FROM ${partition_metadata_table} WHERE id = 1;
    -- An older mark does as well, and a lock on it would keep the host from
    -- moving it for as long as the caller's transaction is open.
    SELECT high_water_mark INTO mark
      FROM ${high_water_mark_store_table}
     WHERE topic_name = 'event-store';
    IF counter IS NULL OR partition_count IS NULL OR mark IS NULL THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT =
            'the schema is not complete; run `moontide schema upgrade`';
    END IF;
    IF counter < mark THEN
        SET fault = CONCAT('the event store ends at ', counter,
                           ', below its high-water mark ', mark,
                           ': an older copy was restored');
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = fault;
    END IF;

    -- An id that stands for other content, stored or earlier in the array.
    SELECT MIN(CONCAT('event id ', e.id, ' is ',
                      IF(s.id IS NULL, 'used earlier in the same batch',
                         CONCAT('stored at position ', s.global_position)),
                      ' with other content; give the new event an id of its',
                      ' own'))
      INTO fault
      FROM JSON_TABLE(events, '$[*]' COLUMNS (
               n FOR ORDINALITY,
               type LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
                   PATH '$.type',
               payload JSON PATH '$.payload',
               metadata JSON PATH '$.metadata',
               id LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
                   PATH '$.id',
               revision INT PATH '$.revision' DEFAULT '0' ON EMPTY,
               occurred_at JSON PATH '$.occurred_at')) AS e
      LEFT JOIN ${event_store_table} AS s ON s.id = LOWER(e.id)
      LEFT JOIN JSON_TABLE(events, '$[*]' COLUMNS (
               n FOR ORDINALITY,
               type LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
                   PATH '$.type',
               payload JSON PATH '$.payload',
               metadata JSON PATH '$.metadata',
               id LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
                   PATH '$.id',
               revision INT PATH '$.revision' DEFAULT '0' ON EMPTY,
               occurred_at JSON PATH '$.occurred_at')) AS b
        ON s.id IS NULL AND LOWER(b.id) = LOWER(e.id) AND b.n < e.n
     WHERE e.id IS NOT NULL
       AND (s.id IS NOT NULL AND NOT (
                s.aggregate_type = wanted_type AND s.aggregate_id = wanted_id
                AND s.event_type = e.type AND s.event_revision = e.revision
                AND s.payload = e.payload COLLATE utf8mb4_nopad_bin
                AND s.metadata <=> NULLIF(e.metadata, 'null')
                    COLLATE utf8mb4_nopad_bin
                AND (COALESCE(e.occurred_at, 'null') = 'null'
                     OR s.occurred_at =
                        CAST(CONCAT(SUBSTR(e.occurred_at, 2, 10), ' ',
                                    REGEXP_SUBSTR(SUBSTR(e.occurred_at, 13),
                                                  '^[0-9:.]+'))
                             AS DATETIME(6))
                        - INTERVAL COALESCE(TIME_TO_SEC(NULLIF(REGEXP_SUBSTR(
                              e.occurred_at,
                              '[+-][0-9]{2}:[0-9]{2}(?="$)'), '')), 0) SECOND))
            OR b.id IS NOT NULL AND NOT (
                b.type = e.type AND b.revision = e.revision
                AND b.payload = e.payload COLLATE utf8mb4_nopad_bin
                AND NULLIF(b.metadata, 'null') <=> NULLIF(e.metadata, 'null')
                    COLLATE utf8mb4_nopad_bin
                AND COALESCE(b.occurred_at, 'null')
                    = COALESCE(e.occurred_at, 'null')
                      COLLATE utf8mb4_nopad_bin));
    IF fault IS NOT NULL THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = fault;
    END IF;

    SELECT COUNT(*) INTO fresh
      FROM (SELECT e.n, e.id,
                   ROW_NUMBER() OVER (PARTITION BY COALESCE(LOWER(e.id), e.n)
                                      ORDER BY e.n) AS nth
              FROM JSON_TABLE(events, '$[*]' COLUMNS (
                       n FOR ORDINALITY,
                       id LONGTEXT CHARACTER SET utf8mb4
                           COLLATE utf8mb4_nopad_bin PATH '$.id')) AS e) AS e
     WHERE e.nth = 1
       AND NOT EXISTS (SELECT 1 FROM ${event_store_table} AS s
                        WHERE s.id = LOWER(e.id));

    IF fresh > 0 THEN
        SET last_sequence = (
            SELECT sequence_no
              FROM ${event_store_table}
             WHERE aggregate_type = wanted_type AND aggregate_id = wanted_id
             ORDER BY sequence_no DESC LIMIT 1
               FOR UPDATE);
        IF expected = 'none' AND last_sequence IS NOT NULL
           OR expected NOT IN ('any', 'none')
              AND NOT (last_sequence <=> CAST(expected AS SIGNED)) THEN
            SET fault = CONCAT(
                'stream ', LEFT(wanted_type, 80), ' "', LEFT(wanted_id, 80),
                '": expected ',
                IF(expected = 'none', 'no event',
                   CONCAT('sequence number ', expected)), ', but ',
                COALESCE(CONCAT('its last event has sequence number ',
                                last_sequence), 'it has no event yet'),
                '; read the stream again and decide anew');
            SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = fault;
        END IF;
        UPDATE ${event_store_global_position_table}
           SET val = val + fresh WHERE id = 1;
        INSERT INTO ${event_store_table}
               (id, aggregate_id, aggregate_type, sequence_no, event_type,
                event_revision, payload, metadata, occurred_at, partition_key,
                global_position)
        SELECT COALESCE(LOWER(e.id),
                        CONCAT_WS('-', LEFT(e.moment, 8), RIGHT(e.moment, 4),
                                  CONCAT('7', SUBSTR(e.noise, 1, 3)),
                                  CONCAT('a', SUBSTR(e.noise, 4, 3)),
                                  SUBSTR(e.noise, 7, 12))),
               wanted_id, wanted_type,
               COALESCE(last_sequence, -1) + e.rank, e.type, e.revision,
               e.payload, e.metadata, COALESCE(e.occurred_at, written_at),
               hash % partition_count, counter + e.rank
          FROM (SELECT f.*, ROW_NUMBER() OVER (ORDER BY f.n) AS rank,
                       LOWER(LPAD(HEX(CAST(UNIX_TIMESTAMP(NOW(3)) * 1000
                                           AS UNSIGNED)), 12, '0')) AS moment,
                       MD5(CONCAT(UUID(), RAND())) AS noise
                  FROM (SELECT j.n, j.id, j.type, j.revision, j.payload,
                               NULLIF(j.metadata, 'null') AS metadata,
                               IF(COALESCE(j.occurred_at, 'null') = 'null',
                                  NULL,
                                  CAST(CONCAT(SUBSTR(j.occurred_at, 2, 10), ' ',
                                              REGEXP_SUBSTR(
                                                  SUBSTR(j.occurred_at, 13),
                                                  '^[0-9:.]+'))
                                       AS DATETIME(6))
                                  - INTERVAL COALESCE(TIME_TO_SEC(NULLIF(
                                        REGEXP_SUBSTR(j.occurred_at,
                                            '[+-][0-9]{2}:[0-9]{2}(?="$)'),
                                        '')), 0) SECOND) AS occurred_at,
                               ROW_NUMBER() OVER (
                                   PARTITION BY COALESCE(LOWER(j.id), j.n)
                                   ORDER BY j.n) AS nth
                          FROM JSON_TABLE(events, '$[*]' COLUMNS (
                                   n FOR ORDINALITY,
                                   type LONGTEXT CHARACTER SET utf8mb4
                                       COLLATE utf8mb4_nopad_bin PATH '$.type',
                                   payload JSON PATH '$.payload',
                                   metadata JSON PATH '$.metadata',
                                   id LONGTEXT CHARACTER SET utf8mb4
                                       COLLATE utf8mb4_nopad_bin PATH '$.id',
                                   revision INT PATH '$.revision'
                                       DEFAULT '0' ON EMPTY,
                                   occurred_at JSON PATH '$.occurred_at'))
                               AS j) AS f
                 WHERE f.nth = 1
                   AND NOT EXISTS (SELECT 1 FROM ${event_store_table} AS s
                                    WHERE s.id = LOWER(f.id))) AS e;
    END IF;

    -- One row per event, in the order of the array.
    SELECT s.id, s.sequence_no, s.global_position,
           s.global_position <= counter OR e.nth > 1 AS repeated
      FROM (SELECT f.*,
                   SUM(f.nth = 1 AND (f.id IS NULL OR NOT EXISTS (
                           SELECT 1 FROM ${event_store_table} AS o
                            WHERE o.id = LOWER(f.id)
                              AND o.global_position <= counter)))
                       OVER (ORDER BY f.n) AS rank
              FROM (SELECT j.n, j.id,
                           ROW_NUMBER() OVER (
                               PARTITION BY COALESCE(LOWER(j.id), j.n)
                               ORDER BY j.n) AS nth
                      FROM JSON_TABLE(events, '$[*]' COLUMNS (
                               n FOR ORDINALITY,
                               id LONGTEXT CHARACTER SET utf8mb4
                                   COLLATE utf8mb4_nopad_bin PATH '$.id'))
                           AS j) AS f) AS e
      JOIN ${event_store_table} AS s
        ON s.global_position = counter + e.rank AND e.id IS NULL
           OR s.id = LOWER(e.id)
     ORDER BY e.n;
    IF alone THEN
        COMMIT;
    END IF;
END //

-- ignoreLines:1
DELIMITER ;
