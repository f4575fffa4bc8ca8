---@meta moontide.testing

--- What `require "moontide.testing"` gives. For editors only; nothing loads
--- this file.
---@class moontide.testing
local testing = {}

---@class moontide.testing.Letter
---@field id string of its row
---@field consumer string
---@field topic string
---@field position integer
---@field key string
---@field type string
---@field status "FAILED" | "WAITING" | "HALTED" | "DEAD_LETTER_KEY" | "DEAD_LETTER"
---@field failures integer
---@field next_retry_at string?
---@field recorded_at string
---@field reason string?
---@field unresolved boolean
---@field message table?

--- All that is there must hold.
---@class moontide.testing.Filter
---@field consumer? string
---@field type? string
---@field key? string
---@field error? string contained in the reason
---@field status? string
---@field older_than? number | string seconds or "30m"
---@field newer_than? number | string
---@field position? integer
---@field id? string
---@field all? boolean retry and delete: all of them

--- What assert.dead_lettered, retried, waiting and skipped compare.
---@class moontide.testing.Expected
---@field key? string
---@field type? string
---@field position? integer
---@field status? string
---@field failures? integer
---@field error? string contained in the reason
---@field count? integer exactly so many

--- The URL of a fresh database.
---@return string
function testing.database() end

--- A host of the application in `options.app`, the working folder by default.
---@param options? table configuration keys
---@return moontide.testing.Host
function testing.host(options) end

--- The events with their stream, for project and prove.
---@param aggregate string
---@param id string
---@param events table[]
---@return table[]
function testing.stream(aggregate, id, events) end

--- Folds a keyed projection without a database: states by key.
---@param declaration table
---@param events table[]
---@return table<string, table>
function testing.project(declaration, events) end

--- Shows that a projection gives the same after a rebuild, in another
--- interleaving of keys, and when batches are delivered again.
---@param declaration table
---@param events table[]
---@param options? { seed?: integer, shuffles?: integer, read?: fun(host: moontide.testing.Host): table }
---@return table
function testing.prove(declaration, events, options) end

--- What became of a command.
---@class moontide.testing.CommandOutcome
---@field outcome "accepted" | "rejected"
---@field command_id string
---@field repeated boolean it was done before
---@field reason string? of a rejected one, with details
---@field details any
---@field events table[]? of an accepted one, as they were appended
---@field version integer? sequence number of the aggregate's last event
---@field loaded integer? events that were read to decide
---@field snapshot integer? sequence number of the snapshot that reading began after

--- What a command has made of the given events.
---@class moontide.testing.Outcome
---@field outcome "accepted" | "rejected"
---@field reason string?
---@field details any
---@field events { type: string, revision: integer, payload: any, metadata: table }[]
---@field state table after these events
local Outcome = {} -- luacheck: ignore 241

--- Each of these raises when it is not so, and gives the outcome.
---@param reason string
---@param details? any
---@return moontide.testing.Outcome
function Outcome:rejects(reason, details) end
---@return moontide.testing.Outcome
function Outcome:accepts() end
---@param ... table of moontide.event, exactly these; payload and what else is named is compared
---@return moontide.testing.Outcome
function Outcome:emits(...) end
---@return moontide.testing.Outcome
function Outcome:emits_nothing() end
---@param state table
---@return moontide.testing.Outcome
function Outcome:leaves(state) end
--- Another command, after the events of this one.
---@param command string
---@param args? any
---@param options? { metadata?: table }
---@return moontide.testing.Outcome
function Outcome:when(command, args, options) end

---@class moontide.testing.Given
local Given = {} -- luacheck: ignore 241
---@param command string
---@param args? any
---@param options? { metadata?: table }
---@return moontide.testing.Outcome
function Given:when(command, args, options) end

--- An aggregate to which these events have happened, without a database.
---@param aggregate table
---@param events? table[]
---@param id? string "A-1" when left out
---@return moontide.testing.Given
function testing.given(aggregate, events, id) end

---@class moontide.testing.Host
local Host = {} -- luacheck: ignore 241

---@param aggregate string
---@param id string
---@param events table[]
---@param options? { expected?: integer | "none" | "any" }
---@return { id: string, sequence: integer, position: integer, repeated: boolean }[]
function Host:append(aggregate, id, events, options) end

---@param event_type string
---@param payload any
---@param options? { key?: string, id?: string, metadata?: table, revision?: integer, occurred_at?: string }
---@return { id: string, position: integer, repeated: boolean }
function Host:emit(event_type, payload, options) end

---@param event_type? string
---@return { position: integer, id: string, type: string, key?: string, payload: any, metadata?: table }[]
function Host:emitted(event_type) end

--- The messages that are staged for publishers.
---@param publisher? string
---@param status? "pending" | "processing" | "published" | "parked"
---@return moontide.testing.Published[]
function Host:published(publisher, status) end

--- Applies what is there; raises when a handler failed, unless it was asked for.
---@param options? { failures?: boolean }
---@return integer applied
function Host:run(options) end

---@param projection string
---@param key? string
---@return table?
function Host:read(projection, key) end

---@param sql string
---@return table[]
function Host:query(sql, ...) end

---@param consumer? string
---@return { consumer: string, key: string, position: integer, status: string, failures: integer, reason: string? }[]
function Host:undelivered(consumer) end

--- The handler fails the next `times` times, once by default.
---@param consumer string
---@param event_type string
---@param times? integer
function Host:fail(consumer, event_type, times) end

--- When the next message is tried again; nil: none is.
---@param consumer? string
---@return string?
function Host:next_retry(consumer) end

--- Moves the clock there.
---@param consumer? string
---@return string
function Host:advance_to_retry(consumer) end

---@param duration number | string seconds or "30m"
function Host:advance(duration) end

---@return string
function Host:now() end

--- Commits the next batch, throws the answer away, and delivers it once more.
function Host:redeliver() end

--- Stops and starts the host.
function Host:restart() end

--- Takes the scripts as they lie in the folder now; raises, and goes on with
--- the ones before, when they are not good or would halt a consumer.
---@param options? { accept?: boolean }
---@return { changed: boolean, version: string, changes: string }
function Host:reload(options) end

---@param filter? moontide.testing.Filter
---@return moontide.testing.Letter[]
function Host:dead_letters(filter) end

---@param filter moontide.testing.Filter
---@return table
function Host:retry(filter) end

---@param filter moontide.testing.Filter
---@return table
function Host:delete(filter) end

---@param consumer string
---@return table
function Host:pause(consumer) end

---@param consumer string
---@param options? { past?: boolean, every_key?: boolean, accept?: boolean }
---@return table
function Host:resume(consumer, options) end

---@param consumer string
---@param options? { key?: string, cancel?: boolean, restart?: boolean }
---@return table
function Host:rebuild(consumer, options) end

---@param consumer string
---@param options? { source?: string, force?: boolean }
---@return table
function Host:unsubscribe(consumer, options) end

--- Lets an aggregate decide.
---@param aggregate string
---@param id string
---@param command string
---@param args? any
---@param options? { id?: string, metadata?: table } id: the command's own, under which it is done once
---@return moontide.testing.CommandOutcome
function Host:command(aggregate, id, command, args, options) end

function Host:close() end

---@class moontide.testing.ReplyOptions
---@field to? string type of the message that is answered; the newest one when left out
---@field metadata? table
---@field aggregate_type? string
---@field aggregate_id? string
---@field key? string
---@field id? string
---@field revision? integer
---@field occurred_at? string

---@class moontide.testing.Deadline
---@field name string
---@field due_at string RFC 3339
---@field payload any
---@field status string
---@field attempts integer
---@field reason? string why it has failed

--- One saga in a host, driven step by step.
---@class moontide.testing.Saga
---@field host moontide.testing.Host
---@field id string
local Saga = {} -- luacheck: ignore 241

--- Gives the event that begins the saga.
---@param event table
---@param work? fun(host: moontide.testing.Host) instead of a run
---@return moontide.testing.Saga
function Saga:start(event, work) end

--- Gives any event to the saga.
---@param event table
---@param work? fun(host: moontide.testing.Host) instead of a run
---@return moontide.testing.Saga
function Saga:give(event, work) end

--- The messages that were staged since the last call; they count as sent.
---@return moontide.testing.Published[]
function Saga:relay() end

--- An event for the saga, as the receiver of its newest message would answer.
---@param type string
---@param payload? any its id is filled in where moontide.by takes it from
---@param options? moontide.testing.ReplyOptions
---@return moontide.testing.Saga
function Saga:reply(type, payload, options) end

--- What was given last comes once more.
---@return moontide.testing.Saga
function Saga:duplicate() end

--- A reply behind the deadline that was next.
---@param type string
---@param payload? any
---@param options? moontide.testing.ReplyOptions
---@return moontide.testing.Saga
function Saga:late(type, payload, options) end

--- Time passes from one deadline or timeout of the saga to the next, and what became due happens.
---@param duration number | string seconds or "30m"
---@return moontide.testing.Saga
function Saga:advance(duration) end

--- Up to its next deadline, or the next timeout of its steps.
---@param work? fun(host: moontide.testing.Host) instead of a run
---@return moontide.testing.Saga
function Saga:advance_to_deadline(work) end

---@return moontide.testing.Saga
function Saga:run() end

--- As host:redeliver.
---@return moontide.testing.Saga
function Saga:redeliver() end

--- As host:restart.
---@return moontide.testing.Saga
function Saga:restart() end

--- The messages that it has staged.
---@param publisher? string
---@param status? "pending" | "processing" | "published" | "parked"
---@return moontide.testing.Published[]
function Saga:published(publisher, status) end

--- The events that it has captured.
---@param event_type? string
---@return { position: integer, id: string, type: string, key?: string, payload: any, metadata?: table }[]
function Saga:emitted(event_type) end

--- What it remembers; nil: there is no such saga.
---@return table?
function Saga:state() end

---@return boolean
function Saga:ended() end

---@param all? boolean those of the host too, such as timeouts of steps
---@return moontide.testing.Deadline[]
function Saga:deadlines(all) end

--- The steps of an orchestrated saga, by step and round.
---@return table[]
function Saga:history() end

--- When its next deadline or timeout is.
---@return string?
function Saga:next_due() end

---@return string
function Saga:now() end

function Saga:close() end

--- One saga in a host of its own.
---@param declaration moontide.Declaration
---@param options? { id?: string, host?: moontide.testing.Host, app?: string, database?: string, [string]: any }
---@return moontide.testing.Saga
function testing.saga(declaration, options) end

---@class moontide.testing.WalkOptions
---@field start table the event that begins the saga
---@field replies? table<string, table | fun(message: moontide.testing.Published): table> payloads of answers by type
---@field receivers? table<string, fun(message: moontide.testing.Published, delivery: integer): table?, boolean?>
---@field check? fun(saga: moontide.testing.Saga, outcome: "completed" | "cancelled")
---@field only? string a part of the scenarios' names

--- Takes an orchestrated saga through every single point of failure.
---@param declaration moontide.Declaration
---@param options moontide.testing.WalkOptions
---@return string[] scenarios
function testing.walk_failures(declaration, options) end

---@class moontide.testing.Published
---@field id string that receivers know it by
---@field publisher string
---@field type string
---@field payload any
---@field ordering_key? string
---@field tenant_id? string
---@field execution_id? string
---@field correlation_id? string
---@field causation_id? string
---@field metadata? table
---@field status "pending" | "processing" | "published" | "parked"
---@field occurred_at string

---@class luassert
local luassert = {} -- luacheck: ignore 241

--- A command's outcome, of host:command or of testing.given.
---@param outcome table
---@param reason? string
---@param details? any
function luassert.rejected(outcome, reason, details) end

--- An event among those of a command's outcome; of a host, a captured event.
---@param outcome table | moontide.testing.Host
---@param type string
---@param payload? any of a host: { key, payload, count }
function luassert.emitted(outcome, type, payload) end

--- A message that is staged for a publisher; `key` is its ordering key.
---@param host moontide.testing.Host
---@param publisher string
---@param type? string
---@param expected? { key?: string, payload?: any, count?: integer }
function luassert.published(host, publisher, type, expected) end

--- The saga's deadline stands, due so long after what it has done last.
---@param saga moontide.testing.Saga
---@param name string
---@param duration? number | string
---@param expected? { payload?: any }
function luassert.scheduled_in(saga, name, duration, expected) end

--- What the saga remembers is exactly that.
---@param saga moontide.testing.Saga
---@param state table
function luassert.saga_state(saga, state) end

--- The saga is completed.
---@param saga moontide.testing.Saga
function luassert.ended(saga) end

--- An event of the stream that a listener's command has made.
---@param host moontide.testing.Host
---@param aggregate string
---@param id string
---@param type? string
---@param expected? { payload?: any, count?: integer }
function luassert.dispatched(host, aggregate, id, type, expected) end

---@param host moontide.testing.Host
---@param consumer string
---@param expected? moontide.testing.Expected
function luassert.dead_lettered(host, consumer, expected) end

---@param host moontide.testing.Host
---@param consumer string
---@param expected? moontide.testing.Expected
function luassert.retried(host, consumer, expected) end

---@param host moontide.testing.Host
---@param consumer string
---@param expected? moontide.testing.Expected
function luassert.waiting(host, consumer, expected) end

---@param host moontide.testing.Host
---@param consumer string
---@param expected? moontide.testing.Expected
function luassert.skipped(host, consumer, expected) end

---@param host moontide.testing.Host
---@param consumer string
---@param state "NEW" | "RUNNING" | "PAUSED" | "HALTED" | "REBUILDING"
---@param reason? "APPLY_ERROR" | "MISSING_HISTORY" | "DECLARATION_CHANGED"
function luassert.in_state(host, consumer, state, reason) end

return testing
