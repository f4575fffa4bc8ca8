---@meta moontide

--- What `require "moontide"` gives. For editors only; nothing loads this file.
---@class moontide
local moontide = {}

--- An event as a handler sees it. It is readable while its handler runs.
---@class moontide.Event
---@field id string UUID, lower case
---@field type string
---@field revision integer of the payload's shape: the newest of a declared event type
---@field part integer 1, or the number of the part of an event that was split
---@field payload any decoded when it is first read
---@field metadata table? decoded when it is first read
---@field position integer its place in the topic
---@field topic string
---@field key string
---@field occurred_at string RFC 3339 in UTC
---@field aggregate_type string
---@field aggregate_id string
---@field sequence integer place in the stream of its aggregate, from 0
local Event = {} -- luacheck: ignore 241

--- A plain table with every field, to keep beyond the call.
---@return table
function Event:copy() end

---@class moontide.Log
local Log = {} -- luacheck: ignore 241
---@param text string
---@param fields? table<string, any>
function Log.debug(text, fields) end
---@param text string
---@param fields? table<string, any>
function Log.info(text, fields) end
---@param text string
---@param fields? table<string, any>
function Log.warn(text, fields) end
---@param text string
---@param fields? table<string, any>
function Log.error(text, fields) end

---@alias moontide.Sql string | { sqlite?: string, postgres?: string, mysql?: string }
---@alias moontide.Parameter nil | boolean | number | string | ffi.cdata* | lightuserdata | moontide.Bytes
---@alias moontide.Row table<string, any>

--- The call a handler runs in. Usable only inside its handler.
---@class moontide.Ctx
---@field key string?
---@field partition integer
---@field attempt integer from 1
---@field replaying boolean
---@field delivery_id string? listeners and sagas only
---@field dialect "sqlite" | "postgres" | "mysql"
---@field log moontide.Log
local Ctx = {} -- luacheck: ignore 241

--- Rows; costs a round trip. NULL is nil, integers beyond 2^53 are int64.
---@param sql moontide.Sql parameters are `?`, a literal question mark is `??`
---@param ... moontide.Parameter
---@return moontide.Row[]
function Ctx:query(sql, ...) end

--- Queued; a failure fails the message and names this line.
---@param sql moontide.Sql
---@param ... moontide.Parameter
function Ctx:execute(sql, ...) end

--- Number of rows touched; costs a round trip.
---@param sql moontide.Sql
---@param ... moontide.Parameter
---@return integer
function Ctx:update(sql, ...) end

--- Inserts the row or updates the one with these keys; goes out in bulk.
---@param table string
---@param keys table<string, moontide.Parameter>
---@param values? table<string, moontide.Parameter | moontide.Add>
function Ctx:upsert(table, keys, values) end

--- Runs fn under a savepoint: the way to go on after an SQL error. What fn
--- wrote, emitted or published before it failed is undone.
---@param fn fun(): any
---@return boolean good, any ... what fn returned, or the error's text
function Ctx:try(fn) end

--- The time of the event: projections have no other clock. In listeners and
--- sagas the host's time.
---@return string
function Ctx:now() end

---@class moontide.EmitOptions
---@field key? string what the event is ordered by
---@field id? string a UUID
---@field metadata? table correlation_id and causation_id are added
---@field revision? integer
---@field occurred_at? string RFC 3339

--- Listeners and sagas only: a captured event, in the processing transaction.
---@param type string
---@param payload? any
---@param options? moontide.EmitOptions
function Ctx:emit(type, payload, options) end

--- Listeners and sagas only: the state of a read model, or nil.
---@param projection string
---@param key string
---@return table?
function Ctx:read(projection, key) end

--- Listeners and sagas only: runs a command in the processing transaction. The
--- events, or nil, reason and details when it was rejected.
---@param aggregate string
---@param id string
---@param command string
---@param args? any
---@param options? { metadata?: table, command_id?: string }
---@return table[]? events, string? reason, any details
function Ctx:dispatch(aggregate, id, command, args, options) end

--- The id makes a message repeatable: the same again with the same content is
--- one message, with other content an error.
---@class moontide.PublishOptions
---@field id? string UUID
---@field ordering_key? string one key's go out in order; else the event's aggregate id, or a deadline's saga id
---@field tenant_id? string UUID
---@field execution_id? string UUID

--- Listeners only: stages a message for a declared publisher, in the processing
--- transaction.
---@param publisher string
---@param type string
---@param payload? any
---@param options? moontide.PublishOptions
function Ctx:publish(publisher, type, payload, options) end

---@class moontide.Type
---@class moontide.Declaration
---@class moontide.Add
---@class moontide.Bytes

---@alias moontide.Key string | integer | nil
---@alias moontide.StateHandler fun(state: table, event: moontide.Event, ctx: moontide.Ctx): table | userdata | nil
---@alias moontide.SqlHandler fun(event: moontide.Event, ctx: moontide.Ctx)

--- Durations are seconds or text like "250ms".
---@class moontide.Retry
---@field attempts? integer the first one included
---@field delay? number | string
---@field factor? number
---@field max_delay? number | string
---@field jitter? number 0 to 1

---@class moontide.Failure
---@field reason string class, message and script line
---@field class string
---@field permanent boolean
---@field attempts integer

---@alias moontide.OnErrorWord "halt" | "dead_letter_key" | "dead_letter" | "skip"
---@alias moontide.OnErrorFunction fun(event: moontide.Event, failure: moontide.Failure): moontide.OnErrorWord
---@alias moontide.OnError moontide.OnErrorWord | moontide.OnErrorFunction

--- A topic: "event-store" (the default), "event-capture", or "read-model:NAME" for the
-- read models of a projection, whose messages are "read-model.Changed" (payload: the
-- state) and "read-model.Deleted" (payload: the last state).
---@alias moontide.Source "event-store" | "event-capture" | string

---@class moontide.ProjectionSpec
---@field retry? moontide.Retry
---@field on_error? moontide.OnError
---@field source? moontide.Source
---@field aggregates? string[] aggregate types; all when left out
---@field revision? integer raised to ask for a rebuild
---@field on_change? "rebuild" a changed declaration is rebuilt instead of halted
---@field on_missing_history? "halt" | "continue" when its topic no longer holds what it has not read
---@field distribution? "partitions" | "single-owner" spread over the hosts, or all of it on one
---@field key? fun(event: moontide.Event): moontide.Key, ... the message's own key when left out
---@field fields? table<string, moontide.Type> columns of the query table
---@field initial? fun(key: string): table
---@field table? string name of the query table
---@field topic? boolean its read models go to "read-model:NAME" though nothing declared reads it
---@field changes? "last" | "every" what that topic gets: the last state of a transaction, or each
---@field on table<string, moontide.StateHandler>

---@class moontide.SqlProjectionSpec
---@field retry? moontide.Retry
---@field on_error? moontide.OnError
---@field source? moontide.Source
---@field aggregates? string[]
---@field revision? integer raised to ask for a rebuild
---@field on_change? "rebuild" a changed declaration is rebuilt instead of halted
---@field on_missing_history? "halt" | "continue" when its topic no longer holds what it has not read
---@field distribution? "partitions" | "single-owner" spread over the hosts, or all of it on one
---@field key? fun(event: moontide.Event): moontide.Key, ...
---@field tables? moontide.Sql path of a DDL file, or one per dialect
---@field reset? fun(ctx: moontide.Ctx) empties the tables
---@field on table<string, moontide.SqlHandler>

--- Keeps a state per key in a query table.
---@param name string
---@return fun(spec: moontide.ProjectionSpec): moontide.Declaration
function moontide.projection(name) end

--- Writes tables of its own through ctx.
---@param name string
---@return fun(spec: moontide.SqlProjectionSpec): moontide.Declaration
function moontide.sql_projection(name) end

---@class moontide.ListenerSpec
---@field start "now" | "beginning" whether what was there before its first start is for it
---@field source? moontide.Source
---@field aggregates? string[]
---@field key? fun(event: moontide.Event): moontide.Key, ... what it is ordered by
---@field retry? moontide.Retry
---@field on_error? moontide.OnError
---@field on_missing_history? "halt" | "continue"
---@field distribution? "partitions" | "single-owner"
---@field on table<string, moontide.SqlHandler>

--- Causes effects, once per message.
---@param name string
---@return fun(spec: moontide.ListenerSpec): moontide.Declaration
function moontide.listener(name) end

--- One saga, in its handlers.
---@class moontide.Saga
---@field id string
---@field state table changed in place, or assigned
---@field history? moontide.SagaStepRow[] of a saga with steps
local Saga = {} -- luacheck: ignore 241

--- Sets a deadline, or moves the one of this name.
--- Set by a deadline's handler it is due a second later at the earliest.
---@param name string one that the declaration's `deadlines` have a handler for
---@param when number | string seconds or "30m" from now, at most ten years, or a time "2027-01-31T12:00:00Z"
---@param payload? any what its handler gets
function Saga:deadline(name, when, payload) end

--- Takes a deadline back; there need not be one.
---@param name string
function Saga:cancel(name) end

--- Ends the saga after this handler; its deadlines go.
function Saga:complete() end

---@class moontide.Deadline
---@field name string
---@field due_at string RFC 3339
---@field payload any

---@alias moontide.SagaHandler fun(saga: moontide.Saga, event: moontide.Event, ctx: moontide.Ctx)
---@alias moontide.DeadlineHandler fun(saga: moontide.Saga, deadline: moontide.Deadline, ctx: moontide.Ctx)

--- One round of a step, as it is now.
---@class moontide.SagaStepRow
---@field step string its name
---@field round integer from 1; another one begins with a late success
---@field state "SENT" | "OVERDUE" | "SUCCEEDED" | "FAILED" | "TIMED_OUT" | "COMPENSATING" | "STUCK" | "COMPENSATED"
---@field command_id string
---@field compensation_id? string
---@field sends integer how often its command was sent
---@field compensation_sends integer
---@field reason? string why it failed
---@field deadline_at? string RFC 3339: when what it awaits is overdue
---@field sent_at string
---@field answered_at? string
---@field compensation_sent_at? string
---@field compensated_at? string

---@alias moontide.StepMessage fun(saga: moontide.Saga, event: moontide.Event?, ctx: moontide.Ctx): table

---@class moontide.Compensation
---@field command string type of the message that undoes the step
---@field succeeds string | string[] what confirms it
---@field to? string publisher; the step's
---@field timeout? number | string the step's
---@field message? moontide.StepMessage

---@class moontide.Step
---@field name string
---@field to string publisher
---@field command string type of the message
---@field message? moontide.StepMessage its payload
---@field succeeds? string | string[] without: it is done once it is staged
---@field fails? string | string[]
---@field timeout? number | string how long an answer may take
---@field compensate? moontide.Compensation | false
---@field pivot? boolean nothing is undone once it has succeeded
---@field retriable? boolean behind the pivot: sent until it succeeds

---@class moontide.SagaSpec
---@field id fun(event: moontide.Event): moontide.Key, ... which saga an event is for
---@field starts string[] types that begin a saga
---@field on? table<string, moontide.SagaHandler> required without steps
---@field steps? moontide.Step[] the host sends their commands in this order, and undoes what was done
---@field on_end? fun(saga: moontide.Saga, outcome: "Completed" | "Cancelled", ctx: moontide.Ctx)
---@field deadlines? table<string, moontide.DeadlineHandler> by name
---@field initial? fun(id: string): table
---@field unknown? "ignore" | "dead_letter" | "error" of an event that begins none and finds none
---@field start? "now" | "beginning"
---@field source? moontide.Source
---@field aggregates? string[]
---@field retry? moontide.Retry
---@field on_error? moontide.OnError
---@field on_missing_history? "halt" | "continue"
---@field distribution? "partitions" | "single-owner"

--- Keeps the state of a process per id, and causes effects.
---@param name string
---@return fun(spec: moontide.SagaSpec): moontide.Declaration
function moontide.saga(name) end

---@class moontide.PublisherSpec
---@field to string | fun(message: table) "kafka:TOPIC", "amqp:KEY", "nats:SUBJECT", "redis:STREAM", a URL, "stdout:"

--- Where messages go: the name is what ctx:publish takes.
---@param name string
---@return fun(spec: moontide.PublisherSpec): moontide.Declaration
function moontide.publisher(name) end

--- Done in this order; `default` fills what is missing.
---@class moontide.UpcastTable
---@field rename? table<string, string>
---@field default? table<string, any>
---@field remove? string[]

---@alias moontide.UpcastStep moontide.UpcastTable | fun(payload: any): any

---@class moontide.EventTypeSpec
---@field revision? integer the newest one, 0 when left out
---@field upcast? table<integer, moontide.UpcastStep> by the revision a step starts from, without a gap
---@field into? string[] types of the parts that a step may split an event into
---@field fields? table<string, moontide.Type> of the payload, checked at append
---@field store? "log"

--- How older payloads of a type become the newest, and what a payload has.
---@param type string
---@return fun(spec: moontide.EventTypeSpec): moontide.Declaration
function moontide.event_type(type) end

--- Returned by a step of upcast: the event becomes these.
---@param events table[] of moontide.event
---@return table
function moontide.split(events) end

--- What a command sees beside its aggregate and its arguments.
---@class moontide.CommandCtx
---@field metadata table of the command; what is changed in it changes nothing
---@field command_id string
---@field log moontide.Log
local CommandCtx = {} -- luacheck: ignore 241

--- The time of the command.
---@return string
function CommandCtx:now() end

---@class moontide.Rejection

---@alias moontide.Decision moontide.Rejection | table | table[] | nil
---@alias moontide.Command fun(state: table, args: any, ctx: moontide.CommandCtx): moontide.Decision
---@alias moontide.Apply fun(state: table, event: moontide.Event): table | nil

---@class moontide.SnapshotSpec
---@field every integer events after which the state is stored
---@field version? integer raised when the state's shape or `apply` changes; 1 when left out

---@class moontide.AggregateSpec
---@field initial? fun(id: string): table the state before the first event, {} when left out
---@field commands? table<string, moontide.Command>
---@field apply table<string, moontide.Apply> by event type: every type of its stream
---@field snapshot? moontide.SnapshotSpec

--- Decides on commands, by what its events say.
---@param name string the aggregate type
---@return fun(spec: moontide.AggregateSpec): moontide.Declaration
function moontide.aggregate(name) end

--- Returned by a command: it is refused, and nothing is appended.
---@param reason string for a person
---@param details? any for programs, as JSON
---@return moontide.Rejection
function moontide.reject(reason, details) end

--- A key function that takes the key from a field of the payload.
---@param field string
---@return fun(event: moontide.Event): moontide.Key
function moontide.by(field) end

--- Returned by a handler: the read model goes away.
---@type userdata
moontide.delete = nil

--- JSON null and SQL NULL. It is truthy: compare with ==.
---@type lightuserdata
moontide.null = nil

--- Tags a table as an array, so that an empty one stays [].
---@generic T
---@param t? T[]
---@return T[]
function moontide.array(t) end

--- Tags a table as an object: keys must be strings.
---@param t? table<string, any>
---@return table<string, any>
function moontide.object(t) end

--- For ctx:upsert: the stored value plus n.
---@param n number | ffi.cdata*
---@return moontide.Add
function moontide.add(n) end

--- A binary SQL parameter.
---@param s string
---@return moontide.Bytes
function moontide.bytes(s) end

--- To be raised: `error(moontide.permanent("why"))` is not retried.
---@param message string
---@return table
function moontide.permanent(message) end

---@class moontide.EventOptions
---@field id? string
---@field key? string
---@field metadata? table
---@field revision? integer of the payload, the newest of a declared event type when left out
---@field occurred_at? string
---@field aggregate_type? string
---@field aggregate_id? string

--- An event to append, or to test a handler with.
---@param type string
---@param payload? any
---@param options? moontide.EventOptions
---@return table
function moontide.event(type, payload, options) end

---@class moontide.json
moontide.json = {}
--- Exact: arrays stay arrays, null stays null, large integers are int64.
---@param text string
---@return any
function moontide.json.decode(text) end
--- Keys sorted; raises with a path for what JSON cannot say.
---@param value any
---@return string
function moontide.json.encode(value) end

--- Days as text, YYYY-MM-DD, in UTC.
---@class moontide.date
moontide.date = {}
--- The day of an RFC 3339 time.
---@param timestamp string
---@return string
function moontide.date.of(timestamp) end
---@param day string
---@param days integer
---@return string
function moontide.date.add(day, days) end
---@param from string
---@param to string
---@return integer
function moontide.date.days(from, to) end
---@param day string
---@return integer weekday 1 for Monday to 7 for Sunday
function moontide.date.weekday(day) end

---@class moontide.ColumnOptions
---@field unique? boolean
---@field optional? boolean may be nil or null

---@class moontide.NestedOptions
---@field optional? boolean

--- Types of declared fields.
---@class moontide.types
moontide.types = {}
---@param options? moontide.ColumnOptions
---@return moontide.Type
function moontide.types.text(options) end
---@param options? moontide.ColumnOptions
---@return moontide.Type
function moontide.types.integer(options) end
---@param options? moontide.ColumnOptions
---@return moontide.Type
function moontide.types.double(options) end
--- Strings in and out: no money in doubles. SQLite keeps up to 18 digits.
---@param precision integer all digits
---@param scale integer digits behind the point
---@param options? moontide.ColumnOptions
---@return moontide.Type
function moontide.types.decimal(precision, scale, options) end
---@param options? moontide.ColumnOptions
---@return moontide.Type
function moontide.types.boolean(options) end
---@param options? moontide.ColumnOptions
---@return moontide.Type
function moontide.types.date(options) end
---@param options? moontide.ColumnOptions
---@return moontide.Type
function moontide.types.time(options) end
--- RFC 3339 text; the column keeps microseconds in UTC.
---@param options? moontide.ColumnOptions
---@return moontide.Type
function moontide.types.timestamp(options) end
---@param options? moontide.ColumnOptions
---@return moontide.Type
function moontide.types.uuid(options) end
---@param values string[]
---@param options? moontide.ColumnOptions
---@return moontide.Type
function moontide.types.enum(values, options) end
--- Base64 text in the state, bytes in the column.
---@param options? moontide.ColumnOptions
---@return moontide.Type
function moontide.types.bytes(options) end
---@param of moontide.Type
---@param options? moontide.NestedOptions
---@return moontide.Type
function moontide.types.list(of, options) end
---@param of moontide.Type
---@param options? moontide.NestedOptions
---@return moontide.Type
function moontide.types.set(of, options) end
---@param fields table<string, moontide.Type>
---@param options? moontide.NestedOptions
---@return moontide.Type
function moontide.types.record(fields, options) end
--- Whether a value is a type.
---@param value any
---@return boolean
function moontide.types.is(value) end

return moontide
