-- changeset attributes: splitStatements:false stripComments:false runOnChange:true
-- Appends events to one stream, in the caller's transaction, for writers in
-- any language: the rules are those of `moontide append`. Applied once for the
-- shared table and once for each aggregate type that has its own; the first
-- argument tells which one is meant:
--
--   SELECT * FROM moontide_append(NULL::event_store, 'bank.account', 'A-1',
--       'none', ARRAY['account.Opened'], ARRAY['{"iban": "DE02"}']::json[]);
--
-- expected: 'any', 'none' (the stream has no event yet) or the sequence number
-- of its last event, judged for the first new event.
-- The arrays have an element for each event; those with a default may be left
-- out, or hold NULLs. Payload and metadata are stored byte for byte. An id that
-- is there with the same content gives the first result and writes nothing;
-- where there is none, one is made.
--
-- With SET moontide.notify = 'on' (for a transaction, a session, a role or a
-- database) waiting hosts are told by NOTIFY when the transaction commits.
--
-- SQLSTATE 40001: another writer was faster, run the transaction again; MT001:
-- the stream is not where it was expected; MT002: the id stands for another
-- event; MT003: the database is an older copy; 22023: a value breaks its rule.
CREATE OR REPLACE FUNCTION moontide_append(
    store          ${event_store_table},
    aggregate_type text,
    aggregate_id   text,
    expected       text,
    types          text[],
    payloads       json[],
    metadata       json[]        DEFAULT NULL,
    ids            uuid[]        DEFAULT NULL,
    revisions      integer[]     DEFAULT NULL,
    times          timestamptz[] DEFAULT NULL
) RETURNS TABLE (
    id              uuid,
    sequence_no     bigint,
    global_position bigint,
    repeated        boolean
)
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $append$
#variable_conflict use_column
DECLARE
    of_type     CONSTANT text := $2;
    of_id       CONSTANT text := $3;
    now_is      CONSTANT timestamptz := clock_timestamp();
    count_is    CONSTANT integer := coalesce(cardinality(types), 0);
    event_id    uuid;
    event_type  text;
    revision    integer;
    payload     json;
    about       json;
    document    text;
    happened_at timestamptz;
    stored      ${event_store_table}%ROWTYPE;
    differs     text;
    last_no     bigint;
    partition   bigint := 2166136261;
    position    bigint;
    judged      boolean := false;
    octet       integer;
    random      bytea;
BEGIN
    IF of_type IS NULL OR length(of_type) NOT BETWEEN 1 AND 255 THEN
        RAISE EXCEPTION 'aggregate_type takes 1 to 255 characters'
            USING ERRCODE = '22023';
    END IF;
    IF of_id IS NULL OR length(of_id) NOT BETWEEN 1 AND 255 THEN
        RAISE EXCEPTION 'aggregate_id takes 1 to 255 characters'
            USING ERRCODE = '22023';
    END IF;
    IF expected IS NULL OR expected !~ '^(any|none|[0-9]{1,18})$' THEN
        RAISE EXCEPTION 'expected is "any", "none" or a sequence number from 0'
            USING ERRCODE = '22023';
    END IF;
    IF coalesce(cardinality(payloads), 0) <> count_is
       OR coalesce(cardinality(metadata), count_is) <> count_is
       OR coalesce(cardinality(ids), count_is) <> count_is
       OR coalesce(cardinality(revisions), count_is) <> count_is
       OR coalesce(cardinality(times), count_is) <> count_is
    THEN
        RAISE EXCEPTION 'the arrays have different lengths'
            USING ERRCODE = '22023';
    END IF;

    -- FNV-1a of 32 bits over the bytes of the id, as every host computes it
    FOR i IN 0 .. octet_length(of_id) - 1 LOOP
        octet := get_byte(convert_to(of_id, 'UTF8'), i);
        partition := ((partition # octet) * 16777619) & 4294967295;
    END LOOP;
    SELECT partition % m.partitions INTO STRICT partition
      FROM ${partition_metadata_table} AS m WHERE m.id = 1;

    -- The transaction has its id before it draws a position: the high-water
    -- mark waits for ids.
    PERFORM pg_current_xact_id();
    IF (SELECT m.high_water_mark FROM ${high_water_mark_store_table} AS m
         WHERE m.topic_name = 'event-store')
       > (SELECT s.last_value FROM ${event_store_global_position_table} AS s)
    THEN
        RAISE EXCEPTION 'the event store ends below its high-water mark: this '
            'is an older copy of the database' USING ERRCODE = 'MT003';
    END IF;

    SELECT coalesce(max(e.sequence_no), -1) INTO last_no
      FROM ${event_store_table} AS e
     WHERE e.aggregate_type = of_type AND e.aggregate_id = of_id;

    FOR number IN 1 .. count_is LOOP
        event_type := types[number];
        IF event_type IS NULL OR length(event_type) NOT BETWEEN 1 AND 255 THEN
            RAISE EXCEPTION 'event %: type takes 1 to 255 characters', number
                USING ERRCODE = '22023';
        END IF;
        payload := payloads[number];
        IF payload IS NULL THEN
            RAISE EXCEPTION 'event %: payload is missing', number
                USING ERRCODE = '22023';
        END IF;
        about := metadata[number];
        IF json_typeof(about) <> 'object' THEN
            RAISE EXCEPTION 'event %: metadata is not a JSON object', number
                USING ERRCODE = '22023';
        END IF;
        -- What the server's own check lets through and no host reads.
        FOREACH document IN ARRAY ARRAY[payload::text, about::text] LOOP
            IF document ~* '\\ud[89a-f]' AND document !~*
               '^([^\\]|\\[^u]|\\u(?!d[89a-f])|\\ud[89ab]..\\ud[c-f]..)*$'
            THEN
                RAISE EXCEPTION 'event %: not valid JSON: a string has half of '
                    'a surrogate pair', number USING ERRCODE = '22023';
            END IF;
            IF length(translate(document, '[{', '')) < length(document) - 512
               AND (SELECT max(d.depth) FROM (
                        SELECT sum(CASE WHEN b.sign IN ('[', '{') THEN 1
                                        ELSE -1 END) OVER (ORDER BY b.n)
                          FROM string_to_table(regexp_replace(document,
                                   '"(\\.|[^"\\])*"|[^][{}]+', '', 'g'), NULL)
                               WITH ORDINALITY AS b (sign, n)) AS d (depth))
                   > 512
            THEN
                RAISE EXCEPTION 'event %: JSON nests at most 512 levels', number
                    USING ERRCODE = '22023';
            END IF;
        END LOOP;
        revision := coalesce(revisions[number], 0);
        IF revision < 0 THEN
            RAISE EXCEPTION 'event %: revision is below 0', number
                USING ERRCODE = '22023';
        END IF;
        happened_at := coalesce(times[number], now_is);
        IF happened_at NOT BETWEEN '0001-01-01 00:00:00+00'
                               AND '9999-12-31 23:59:59.999999+00' THEN
            RAISE EXCEPTION 'event %: the time lies outside of the years 1 to '
                '9999', number USING ERRCODE = '22023';
        END IF;

        event_id := ids[number];
        IF event_id IS NOT NULL THEN
            SELECT * INTO stored FROM ${event_store_table} AS e
             WHERE e.id = event_id;
            IF FOUND THEN
                differs := CASE
                    WHEN stored.aggregate_type <> of_type THEN 'aggregate_type'
                    WHEN stored.aggregate_id <> of_id THEN 'aggregate_id'
                    WHEN stored.event_type <> event_type THEN 'type'
                    WHEN stored.event_revision <> revision THEN 'revision'
                    WHEN stored.payload::text <> payload::text THEN 'payload'
                    WHEN stored.metadata::text IS DISTINCT FROM about::text
                    THEN 'metadata'
                    WHEN times[number] IS NOT NULL
                         AND stored.occurred_at <> happened_at
                    THEN 'occurred_at'
                END;
                IF differs IS NOT NULL THEN
                    RAISE EXCEPTION 'event %: id % is stored at position % with '
                        'another %', number, event_id, stored.global_position,
                        differs USING ERRCODE = 'MT002';
                END IF;
                id := event_id;
                sequence_no := stored.sequence_no;
                global_position := stored.global_position;
                repeated := true;
                RETURN NEXT;
                CONTINUE;
            END IF;
        ELSE
            -- version 7: milliseconds, the place in this call, chance
            random := overlay(uuid_send(gen_random_uuid()) PLACING substring(
                int8send(floor(extract(epoch FROM now_is) * 1000)::bigint)
                FROM 3) FROM 1 FOR 6);
            random := set_byte(random, 6, 112 | (number >> 8 & 15));
            random := set_byte(random, 7, number & 255);
            event_id := encode(random, 'hex')::uuid;
        END IF;

        IF NOT judged AND expected <> 'any'
           AND last_no <> (CASE expected WHEN 'none' THEN -1
                           ELSE expected::bigint END)
        THEN
            RAISE EXCEPTION 'stream % "%": expected %, but %', of_type, of_id,
                CASE expected WHEN 'none' THEN 'no event'
                ELSE 'sequence number ' || expected END,
                CASE last_no WHEN -1 THEN 'it has no event yet'
                ELSE 'its last event has sequence number ' || last_no END
                USING ERRCODE = 'MT001';
        END IF;
        judged := true;
        last_no := last_no + 1;
        position := nextval('${event_store_global_position_table}');
        BEGIN
            INSERT INTO ${event_store_table}
                   (id, aggregate_id, aggregate_type, sequence_no, event_type,
                    event_revision, payload, metadata, occurred_at,
                    partition_key, global_position)
            VALUES (event_id, of_id, of_type, last_no, event_type, revision,
                    payload, about, happened_at, partition, position);
        EXCEPTION WHEN unique_violation THEN
            RAISE EXCEPTION 'another writer appended to the same stream at the '
                'same time (%); run the transaction again', SQLERRM
                USING ERRCODE = '40001';
        END;
        id := event_id;
        sequence_no := last_no;
        global_position := position;
        repeated := false;
        RETURN NEXT;
    END LOOP;

    -- A server whose queue of notifications is full refuses to commit: well
    -- before that nothing is sent, and hosts find out by polling.
    IF current_setting('moontide.notify', true) IN ('on', 'true', 'yes', '1')
       AND pg_notification_queue_usage() < 0.5
    THEN
        PERFORM pg_notify(
            'moontide_' || '${high_water_mark_store_table}'::regclass::oid, '');
    END IF;
END
$append$;
