-- What the databases say in different words, so that a spec says it once. The
-- tables of this module become methods of the databases of spec.support.dialect.
local words = { sqlite = {}, postgres = {}, mysql = {} }
local sqlite, postgres, mysql = words.sqlite, words.postgres, words.mysql

-- Triggers -- trigger { name, on = TABLE, at = "AFTER UPDATE", only = CONDITION,
-- body = STATEMENT } or, instead of the body, fails = TEXT, or conflicts = TEXT: as
-- if another transaction were in the way (servers only). The statements that
-- make it; NEW and OLD are the row in the condition and the body.
-- drop_trigger(name, TABLE) gives the statement that removes it.

function sqlite.trigger(_, wanted)
  local body = wanted.body or ("SELECT RAISE(ABORT, '%s')"):format(wanted.fails)
  return { ("CREATE TRIGGER %s %s ON %s %s BEGIN %s; END"):format(wanted.name, wanted.at, wanted.on,
    wanted.only and "WHEN " .. wanted.only or "", body) }
end

function sqlite.drop_trigger(_, name)
  return "DROP TRIGGER " .. name
end

function postgres.trigger(_, wanted)
  local body = wanted.body or ("RAISE EXCEPTION '%s'%s"):format(wanted.fails or wanted.conflicts,
    wanted.conflicts and " USING ERRCODE = 'serialization_failure'" or "")
  return {
    ("CREATE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql AS $body$ BEGIN %s; RETURN NEW; END $body$"):format(
      wanted.name, body),
    ("CREATE TRIGGER %s %s ON %s FOR EACH ROW %s EXECUTE FUNCTION %s()"):format(wanted.name, wanted.at, wanted.on,
      wanted.only and "WHEN (" .. wanted.only .. ")" or "", wanted.name),
  }
end

function postgres.drop_trigger(_, name)
  return ("DROP FUNCTION %s() CASCADE"):format(name)
end

function mysql.trigger(_, wanted)
  local body = wanted.body or wanted.conflicts
    and ("SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1205, MESSAGE_TEXT = '%s'"):format(wanted.conflicts)
    or ("SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '%s'"):format(wanted.fails)
  return { ("CREATE TRIGGER %s %s ON %s FOR EACH ROW BEGIN IF %s THEN %s; END IF; END"):format(wanted.name, wanted.at,
    wanted.on, wanted.only or "TRUE", body) }
end

mysql.drop_trigger = sqlite.drop_trigger

-- Other writers -- intruder { on = TABLE, key = KEY, body = STATEMENT }: runs
-- the statement for a projection between the moment at which its read models
-- are read and the moment at which another one than KEY is written, which comes
-- after KEY. Gives the statements that make it; the handler has to run the query
-- `intrusion`, which is when it happens where a query can write.
-- remove_intruder, with the same argument, gives the statements that end it.

sqlite.intrusion, postgres.intrusion = "SELECT 1 AS done", "SELECT 1 AS done"
mysql.intrusion = "SELECT intruder() AS done"

function sqlite.intruder(_, wanted)
  local made = {}
  for i, event in ipairs { "UPDATE", "DELETE" } do
    made[i] = ("CREATE TRIGGER intruder_%s AFTER %s ON %s WHEN OLD.read_model_id = '%s' BEGIN %s; END"):format(event,
      event, wanted.on, wanted.key, wanted.body)
  end
  return made
end

function sqlite.remove_intruder()
  return { "DROP TRIGGER intruder_UPDATE", "DROP TRIGGER intruder_DELETE" }
end

-- The table is a view meanwhile; who reads it in a transaction that may write
-- lets the intruder in, once, and sees what was there before.
function postgres.intruder(_, wanted)
  return {
    ("ALTER TABLE %s RENAME TO intruded"):format(wanted.on),
    ([[
    CREATE FUNCTION intruder() RETURNS boolean LANGUAGE plpgsql AS $body$ BEGIN
      IF current_setting('transaction_read_only') = 'off'
         AND current_setting('spec.intruding', true) IS DISTINCT FROM 'yes' THEN
        PERFORM set_config('spec.intruding', 'yes', true);
        %s;
      END IF;
      RETURN true;
    END $body$]]):format(wanted.body),
    ("CREATE VIEW %s AS SELECT * FROM intruded WHERE intruder()"):format(wanted.on),
  }
end

function postgres.remove_intruder(_, wanted)
  return {
    "DROP VIEW " .. wanted.on,
    "DROP FUNCTION intruder()",
    "ALTER TABLE intruded RENAME TO " .. wanted.on,
  }
end

local function mysql_intruder(body)
  return ("CREATE OR REPLACE FUNCTION intruder() RETURNS INT MODIFIES SQL DATA BEGIN %s RETURN 1; END"):format(body)
end

function mysql.intruder(_, wanted)
  return { mysql_intruder(wanted.body .. ";") }
end

function mysql.remove_intruder()
  return { mysql_intruder "" }
end

-- fresh_id: an expression for a message id that nothing has had.

sqlite.fresh_id = "lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-7' || substr(hex(randomblob(2)), 2) "
  .. "|| '-8' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))"
postgres.fresh_id = "gen_random_uuid()"
mysql.fresh_id = "uuid()"

-- Work -- count_to(n): a query that takes longer the larger n is and gives n
-- as `m`; endless(): one that does not come to an end.

local COUNT = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c%s) SELECT max(x) AS m FROM c"

function sqlite.count_to(_, n)
  return COUNT:format(" WHERE x < " .. n)
end

function sqlite.endless()
  return COUNT:format ""
end

postgres.count_to, postgres.endless = sqlite.count_to, sqlite.endless

function mysql.count_to(_, n)
  return ("SELECT max(seq + 0) AS m FROM seq_1_to_%d"):format(n)
end

function mysql.endless()
  return "SELECT max(a.seq + b.seq) AS m FROM seq_1_to_1000000000 AS a, seq_1_to_1000000000 AS b"
end

-- Types -- type_name(kind, precision, scale): the column type of a declared
-- field, as `columns` gives it. Kinds are the names in moontide.types, and key
-- and document.

local SQLITE_TYPES = {
  integer = "INTEGER", double = "REAL", decimal = "INTEGER", boolean = "INTEGER", bytes = "BLOB",
}

function sqlite.type_name(_, kind)
  return SQLITE_TYPES[kind] or "TEXT"
end

local EXACT_TEXT = 'character varying(255) COLLATE "C"'
local POSTGRES_TYPES = {
  key = EXACT_TEXT, text = EXACT_TEXT, enum = EXACT_TEXT, integer = "bigint", double = "double precision",
  decimal = "numeric(%d,%d)", boolean = "boolean", date = "date", time = "time(6) without time zone",
  timestamp = "timestamp(6) without time zone", uuid = "uuid", bytes = "bytea", document = "text",
}

function postgres.type_name(_, kind, precision, scale)
  return (POSTGRES_TYPES[kind]:gsub("%%d,%%d", ("%s,%s"):format(precision, scale)))
end

local EXACT = " CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
local MYSQL_TYPES = {
  key = "varchar(255)" .. EXACT, text = "varchar(255)" .. EXACT, enum = "varchar(255)" .. EXACT,
  integer = "bigint(20)", double = "double", decimal = "decimal(%d,%d)", boolean = "tinyint(1)", date = "date",
  time = "time(6)", timestamp = "datetime(6)", uuid = "char(36) CHARACTER SET ascii COLLATE ascii_bin",
  bytes = "longblob", document = "longtext" .. EXACT,
}

function mysql.type_name(_, kind, precision, scale)
  return (MYSQL_TYPES[kind]:gsub("%%d,%%d", ("%s,%s"):format(precision, scale)))
end

-- columns(table): { name, type } each, in order. indexes(table): name and
-- whether it is unique, sorted, the primary key left out.

function sqlite:columns(name)
  return self:query(("SELECT name, type FROM pragma_table_info('%s')"):format(name))
end

function sqlite:indexes(name)
  return self:query(([[
    SELECT name, "unique" AS is_unique FROM pragma_index_list('%s') WHERE origin = 'c' ORDER BY name]]):format(name))
end

function postgres:columns(name)
  return self:query(([[
    SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod)
           || CASE WHEN c.collname = 'default' OR c.collname IS NULL THEN ''
                   ELSE ' COLLATE ' || quote_ident(c.collname) END AS type
      FROM pg_attribute a LEFT JOIN pg_collation c ON c.oid = a.attcollation
     WHERE a.attrelid = '%s'::regclass AND a.attnum > 0 ORDER BY a.attnum]]):format(name))
end

function postgres:indexes(name)
  return self:query(([[
    SELECT c.relname AS name, i.indisunique::int AS is_unique FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
     WHERE i.indrelid = '%s'::regclass AND NOT i.indisprimary ORDER BY 1]]):format(name))
end

function mysql:columns(name)
  return self:query(([[
    SELECT column_name AS name, concat(column_type, CASE WHEN collation_name IS NULL THEN ''
           ELSE concat(' CHARACTER SET ', character_set_name, ' COLLATE ', collation_name) END) AS type
      FROM information_schema.columns WHERE table_schema = database() AND table_name = '%s'
     ORDER BY ordinal_position]]):format(name))
end

function mysql:indexes(name)
  return self:query(([[
    SELECT index_name AS name, 1 - min(non_unique) AS is_unique FROM information_schema.statistics
     WHERE table_schema = database() AND table_name = '%s' AND index_name <> 'PRIMARY'
     GROUP BY index_name ORDER BY 1]]):format(name))
end

-- Tables of others -- make_table(name, columns, indexes): the script for a
-- table that a spec makes itself. A column is { NAME, KIND[, MORE] }; the kind
-- `key_without_case` compares A and a as one. An index is { NAME, COLUMNS[,
-- unique = true] }.

local function table_script(database, name, columns, indexes, options)
  local lines = {}
  for i, column in ipairs(columns) do
    lines[i] = ("%s %s %s"):format(column[1], database:column_type(column[2]), column[3] or "")
  end
  local script = { ("CREATE TABLE %s (%s)%s"):format(name, table.concat(lines, ", "), options) }
  for _, index in ipairs(indexes or {}) do
    script[#script + 1] = ("CREATE %sINDEX %s ON %s (%s)"):format(index.unique and "UNIQUE " or "", index[1], name,
      index[2])
  end
  return table.concat(script, ";\n") .. ";"
end

function sqlite:column_type(kind)
  return kind == "key_without_case" and "TEXT COLLATE NOCASE" or self:type_name(kind)
end

function sqlite:make_table(name, columns, indexes)
  return table_script(self, name, columns, indexes, " STRICT")
end

function postgres:column_type(kind)
  return kind == "key_without_case" and "varchar(255) COLLATE without_case" or self:type_name(kind)
end

local WITHOUT_CASE = "CREATE COLLATION without_case (provider = icu, locale = 'und-u-ks-level2', "
  .. "deterministic = false);\n"

function postgres:make_table(name, columns, indexes)
  local script = table_script(self, name, columns, indexes, "")
  return (script:find("without_case", 1, true) and WITHOUT_CASE or "") .. script
end

function mysql:column_type(kind)
  return kind == "key_without_case" and "varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
    or self:type_name(kind)
end

function mysql:make_table(name, columns, indexes)
  return table_script(self, name, columns, indexes, " DEFAULT" .. EXACT)
end

-- Values -- literal(kind, text[, scale]): the SQL for a value of a declared
-- field as it has to be stored. `text` is its usual form; bytes are digits.

local function quoted(text)
  return "'" .. text:gsub("'", "''") .. "'"
end

-- Values that are written as they are.
local PLAIN = { integer = true, boolean = true, decimal = true }

function sqlite.literal(_, kind, text, scale)
  if PLAIN[kind] and kind ~= "decimal" then return "(" .. text .. ")" end
  if kind == "double" then return ("CAST(%s AS REAL)"):format(text) end
  if kind == "bytes" then return ("x'%s'"):format(text) end
  if kind == "decimal" then
    local sign, whole, fraction = text:match "^(-?)(%d+)%.?(%d*)$"
    return sign .. whole .. fraction .. ("0"):rep(scale - #fraction)
  end
  return quoted(text)
end

function postgres.literal(_, kind, text)
  if PLAIN[kind] then return "(" .. text .. ")" end
  if kind == "double" then return ("CAST('%s' AS DOUBLE PRECISION)"):format(text) end
  if kind == "bytes" then return ("decode('%s', 'hex')"):format(text) end
  return quoted(text:gsub("Z$", kind == "timestamp" and "" or "Z"))
end

function mysql.literal(_, kind, text)
  if PLAIN[kind] then return "(" .. text .. ")" end
  if kind == "double" then return ("CAST('%s' AS DOUBLE)"):format(text) end
  if kind == "bytes" then return ("x'%s'"):format(text) end
  if kind == "timestamp" then return quoted((text:gsub("Z$", ""):gsub("T", " "))) end
  return quoted(text)
end

-- text_of_bytes(digits): these bytes as a text, whatever they are.

function sqlite.text_of_bytes(_, digits)
  return ("CAST(x'%s' AS TEXT)"):format(digits)
end

function postgres.text_of_bytes(_, digits)
  return ("convert_from(decode('%s', 'hex'), 'UTF8')::json"):format(digits)
end

function mysql.text_of_bytes(_, digits)
  return ("x'%s'"):format(digits)
end

-- settings: a query of a script for what its session is set to, as `value`.

sqlite.settings = "SELECT 'its pragmas are out of reach' AS value"

postgres.settings = [[
SELECT concat_ws(' ', current_user, current_schema(), current_setting('search_path'), current_setting('TimeZone'),
  current_setting('transaction_isolation'), current_setting('default_transaction_isolation'),
  current_setting('lock_timeout'), current_setting('client_encoding')) AS value]]

mysql.settings = [[
SELECT group_concat(variable_value ORDER BY variable_name SEPARATOR ' ') AS value
  FROM information_schema.session_variables
 WHERE variable_name IN ('TX_ISOLATION', 'SQL_MODE', 'TIME_ZONE', 'CHARACTER_SET_CLIENT', 'COLLATION_CONNECTION',
   'INNODB_LOCK_WAIT_TIMEOUT', 'AUTOCOMMIT')]]

-- Lost connections -- the statements that make lose_connection(), and the query in which
-- a script loses its own connection: the first `times` times, or once. None
-- where there is none.

postgres.loss = "SELECT lose_connection() AS done"
mysql.loss = postgres.loss

function postgres.make_loss(_, times)
  return "CREATE SEQUENCE kills", ([[
    CREATE FUNCTION lose_connection() RETURNS integer LANGUAGE plpgsql AS $body$ BEGIN
      IF nextval('kills') <= %d THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
      RETURN 1;
    END $body$]]):format(times or 1)
end

function mysql.make_loss(_, times)
  return "CREATE SEQUENCE kills", ([[
    CREATE FUNCTION lose_connection() RETURNS INT BEGIN
      IF NEXT VALUE FOR kills <= %d THEN KILL CONNECTION_ID(); END IF;
      RETURN 1;
    END]]):format(times or 1)
end

-- lock_checkpoints: begins a transaction that keeps all rows locked, for hold.

sqlite.lock_checkpoints = "BEGIN IMMEDIATE;"
postgres.lock_checkpoints = "BEGIN; SELECT 1 FROM CONSUMER_CHECKPOINTS FOR UPDATE;"
mysql.lock_checkpoints = postgres.lock_checkpoints

-- short_text: a column type that takes 20 characters.

sqlite.short_text = "TEXT CHECK (length(short) <= 20)"
postgres.short_text, mysql.short_text = "VARCHAR(20)", "VARCHAR(20)"

-- Documented differences, as facts.

-- Rules judged at the commit only: DEFERRABLE.
sqlite.defers_rules, postgres.defers_rules, mysql.defers_rules = true, true, false

-- A statement of a script, or a trigger, can end the whole transaction.
sqlite.ends_transactions, postgres.ends_transactions, mysql.ends_transactions = true, false, false

-- What an event's payload can be, written around the host.
sqlite.keeps_broken_json, postgres.keeps_broken_json, mysql.keeps_broken_json = true, false, true
sqlite.keeps_broken_text, postgres.keeps_broken_text, mysql.keeps_broken_text = true, false, false

-- The most digits of a t.decimal().
sqlite.decimal_digits, postgres.decimal_digits, mysql.decimal_digits = 18, 65, 65

return words
