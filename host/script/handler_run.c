#include "script/handler_run.h"

#include "consumer/attempt_slot.h"
#include "script/lua_call.h"
#include "script/returned.h"
#include "script/value.h"

#include <stdio.h>

/* "handlers/x.lua:12" of the function at the stack's index. */
void handler_run_where(lua_State *L, int index, char *out, size_t size)
{
    lua_Debug info;

    lua_pushvalue(L, index);
    if (lua_getinfo(L, ">S", &info) == 0 || *info.source != '@')
        snprintf(out, size, "?");
    else
        snprintf(out, size, "%s:%d", info.source + 1, info.linedefined);
}

/* True if `message` starts with "file:line:" already. */
static bool has_where(const char *message)
{
    const char *colon = strchr(message, ':');
    size_t digits = colon != NULL ? strspn(colon + 1, "0123456789") : 0;

    return digits > 0 && colon[1 + digits] == ':';
}

/* The failure of a raise, in the models' words. */
static enum status report(const struct handler_code *code,
                          const struct lua_failure *from,
                          struct failure *failure, struct diag *diag)
{
    const char *where = code->fault.where;
    const char *class = code->fault.class;

    if (from->outcome == LUA_CALL_HOST &&
        (from->host.status == STATUS_PERMANENT ||
         from->host.status == STATUS_UNIQUE)) {
        if (has_where(from->host.message))
            where = "";
        if (*class == '\0')
            class = from->host.status == STATUS_UNIQUE ? "unique" : "sql";
        failure_set(failure, code->fault.permanent, class, "%s%s%s", where,
                    *where != '\0' ? ": " : "", from->host.message);
        failure->waits = code->fault.waits;
        return STATUS_FAILED;
    }
    if (from->outcome == LUA_CALL_HOST && from->host.status == STATUS_FAILED) {
        failure_set(failure, false, lua_call_class(LUA_CALL_TIMEOUT), "%s%s%s",
                    where, *where != '\0' ? ": " : "", from->host.message);
        return STATUS_FAILED;
    }
    if (from->outcome == LUA_CALL_ERROR && code->decode_failed) {
        failure_set(failure, false, "decode", "%s", from->message);
        return STATUS_FAILED;
    }
    return lua_call_report(from, failure, diag);
}

const struct declare_code *handler_run_code(const struct handler_job *job)
{
    return &job->code->set->code[job->call->declaration->index];
}

int handler_run_slots(const struct handler_job *job)
{
    return job->call->declaration->kind == DECLARATION_AGGREGATE
               ? job->code->aggregate_slots
               : job->code->slots;
}

/* Place of the job's command: model/aggregate.c asks for no other. */
static size_t command_of(const struct handler_job *job)
{
    const struct declaration *d = job->call->declaration;
    size_t at = 0;

    while (at + 1 < d->ncommands &&
           !text_equal(d->commands[at], job->command->name))
        at++;
    return at;
}

int handler_run_command(const struct handler_job *job)
{
    return handler_run_code(job)->commands[command_of(job)];
}

void handler_run_fill(lua_State *L, const struct handler_job *job)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, handler_run_slots(job));
    lua_insert(L, -2);
    lua_rawseti(L, -2, (int)job->slot + 1);
    lua_pop(L, 1);
}

void handler_run_push_initial(lua_State *L, struct handler_job *job)
{
    int top = lua_gettop(L);
    int initial = handler_run_code(job)->initial;
    char where[LIMITS_TEXT_SIZE], shown[128];
    bool one;

    if (initial == LUA_NOREF) {
        lua_newtable(L);
        return;
    }
    lua_rawgeti(L, LUA_REGISTRYINDEX, initial);
    lua_pushvalue(L, -1);
    lua_pushlstring(L, job->call->key.data != NULL ? job->call->key.data : "",
                    job->call->key.len);
    lua_call(L, 1, LUA_MULTRET);
    one = returned_one(L, top + 2, shown, sizeof(shown));
    if (one && lua_istable(L, -1)) {
        lua_remove(L, top + 1);
        return;
    }
    if (one)
        value_describe(L, -1, shown, sizeof(shown));
    handler_run_where(L, top + 1, where, sizeof(where));
    failure_set(job->failure, false, "state",
                "%s: initial returned %s; it must return a table", where,
                shown);
    handler_run_fail(job);
    lua_settop(L, top);
}

/* Whether an entry is about the handler of the message's type, and not about
 * a function of the declaration's own. */
static bool is_by_type(enum handler_entry entry)
{
    return entry == ENTRY_DECODE || entry == ENTRY_APPLY_STATE ||
           entry == ENTRY_APPLY || entry == ENTRY_APPLY_EVENT ||
           entry == ENTRY_ENCODE || entry == ENTRY_SAGA ||
           entry == ENTRY_SAGA_PARTS;
}

static int own_function(const struct declare_code *functions,
                        enum handler_entry entry)
{
    switch (entry) {
    case ENTRY_KEYS:
        return functions->key;
    case ENTRY_INITIAL:
        return functions->initial;
    case ENTRY_RESET:
        return functions->reset;
    case ENTRY_ON_ERROR:
        return functions->on_error;
    default:
        return LUA_NOREF;
    }
}

static const char *note_where(struct handler_code *code, lua_State *L,
                              const struct declaration *d, int function)
{
    char where[LIMITS_TEXT_SIZE];

    lua_rawgeti(L, LUA_REGISTRYINDEX, function);
    if (lua_isfunction(L, -1))
        handler_run_where(L, lua_gettop(L), where, sizeof(where));
    else
        snprintf(where, sizeof(where), "%s:%d", d->file, d->line);
    lua_pop(L, 1);
    return arena_string(&code->arena, text_of(where));
}

void handler_run_note_wheres(struct handler_code *code, lua_State *L)
{
    for (size_t i = 0; i < code->set->total; i++) {
        const struct declaration *d = &code->set->items[i];
        const struct declare_code *functions = &code->set->code[i];
        size_t commands = d->ntypes + ENTRY_COUNT;
        const char **wheres = arena_alloc(
            &code->arena,
            (commands + d->ncommands + d->ndeadlines + 2 * d->nsteps + 1) *
                sizeof(*wheres));
        const char **last = wheres + commands + d->ncommands + d->ndeadlines;

        for (size_t t = 0; t < d->ntypes; t++)
            wheres[t] = note_where(code, L, d, functions->handlers[t]);
        for (int e = 0; e < ENTRY_COUNT; e++)
            wheres[d->ntypes + (size_t)e] = note_where(
                code, L, d, own_function(functions, (enum handler_entry)e));
        for (size_t c = 0; c < d->ncommands; c++)
            wheres[commands + c] = note_where(code, L, d,
                                              functions->commands[c]);
        for (size_t n = 0; n < d->ndeadlines; n++)
            wheres[commands + d->ncommands + n] = note_where(
                code, L, d, functions->deadlines[n]);
        for (size_t m = 0; m < 2 * d->nsteps; m++)
            *last++ = note_where(code, L, d, functions->messages[m]);
        *last = note_where(code, L, d, functions->on_end);
        code->wheres[i] = wheres;
    }
}

static bool is_of_deadline(const struct handler_job *job)
{
    return job->saga != NULL && handler_saga_of_deadline(job->saga);
}

/* Place of a saga's function that is not of an event, behind those of
 * commands. */
static size_t own_of_saga(const struct declaration *d,
                          const struct handler_saga *saga)
{
    switch (saga->function) {
    case HANDLER_SAGA_MESSAGE:
        return d->ndeadlines + 2 * saga->step + saga->compensation;
    case HANDLER_SAGA_END:
        return d->ndeadlines + 2 * d->nsteps;
    default:
        return saga->deadline;
    }
}

/* Where the function begins that an entry is about. */
static const char *where_of(const struct handler_job *job,
                            enum handler_entry entry)
{
    const struct handler_code *code = job->code;
    const struct declaration *d = job->call->declaration;
    int64_t at = MAP_ABSENT;

    if (entry == ENTRY_COMMAND)
        return code
            ->wheres[d->index][d->ntypes + ENTRY_COUNT + command_of(job)];
    if (job->saga != NULL && job->saga->function != HANDLER_SAGA_EVENT)
        return code->wheres[d->index][d->ntypes + ENTRY_COUNT + d->ncommands +
                                      own_of_saga(d, job->saga)];
    if (is_by_type(entry))
        at = map_get(&code->types[d->index], job->type);
    return code->wheres[d->index][at == MAP_ABSENT ? d->ntypes + (size_t)entry
                                                   : (size_t)at];
}

/* A reason that names no line gets the one where its function begins; but no
 * function is to blame for what waits for another script. */
static void add_where(const struct handler_job *job, enum handler_entry entry)
{
    char class[32];
    const char *text = strstr(job->failure->reason, ": ");
    size_t len = text != NULL ? (size_t)(text - job->failure->reason) : 0;

    if (text == NULL || len >= sizeof(class) || has_where(text + 2) ||
        job->failure->waits)
        return;
    memcpy(class, job->failure->reason, len);
    class[len] = '\0';
    failure_set(job->failure, job->failure->permanent, class, "%s: %s",
                where_of(job, entry), text + 2);
}

/* The same message gives the same numbers, whenever it is applied. */
static uint64_t seed_of(const struct message *message)
{
    uint64_t seed;

    memcpy(&seed, message->id.bytes + 8, sizeof(seed));
    return seed;
}

/* What the script's event types say of the message. FAILED: it is of a
 * revision that cannot be read. */
static enum status judge(struct handler_code *code, enum handler_entry entry,
                         struct handler_job *job)
{
    const struct message *message = job->call->message;
    const struct event_type *type = NULL;

    job->type = message->type;
    if (code->set->event_types.count > 0 && entry != ENTRY_COMMAND &&
        !is_of_deadline(job))
        type = event_types_find(&code->set->event_types, message->type);
    job->declared = type != NULL;
    if (type == NULL)
        return STATUS_OK;
    switch (event_type_age(type, message->revision)) {
    case EVENT_CURRENT:
        return STATUS_OK;
    case EVENT_OLDER:
        if (type->ninto == 0)
            code->older = type;
        else if (entry != ENTRY_ON_ERROR) /* it sees what is stored */
            job->splits = type;
        return STATUS_OK;
    default:
        break;
    }
    if (entry != ENTRY_KEYS && entry != ENTRY_APPLY &&
        entry != ENTRY_APPLY_STATE && entry != ENTRY_APPLY_EVENT &&
        entry != ENTRY_SAGA && entry != ENTRY_SAGA_PARTS)
        return STATUS_OK;
    event_type_refuse(type, message->revision, "is stored", job->failure);
    return STATUS_FAILED;
}

static enum attempt_kind kind_of(enum handler_entry entry)
{
    switch (entry) {
    case ENTRY_KEYS:
        return ATTEMPT_KEY;
    case ENTRY_ON_ERROR:
        return ATTEMPT_ON_ERROR;
    case ENTRY_RESET:
        return ATTEMPT_RESET;
    default:
        return ATTEMPT_HANDLER;
    }
}

/* Says whose attempt it is, should this be the last that is heard of us. */
static void tell_slot(const struct handler_job *job, enum handler_entry entry)
{
    const struct handler_call *call = job->call;

    attempt_slot_start(
        job->code->slot,
        &(struct attempt_call){
            .kind = is_of_deadline(job) ? ATTEMPT_DEADLINE : kind_of(entry),
            .message = call->message,
            .key = call->key,
            .partition = call->partition,
            .attempt = entry == ENTRY_ON_ERROR ? job->failures : call->attempt,
            .where = where_of(job, entry),
        });
}

/* What a call inside of a call must find again when it ends. */
struct frame {
    const struct handler_call *call;
    const void *event, *context, *saga_object;
    struct handler_saga *saga;
    const struct event_type *older;
    bool decode_failed;
    int part;
    struct db_rows *rows;
    uint64_t random[4];
    struct handler_fault fault;
    struct limits_caller caller;
};

static void frame_save(const struct handler_code *code, struct frame *frame)
{
    frame->call = code->call;
    if (code->call == NULL)
        return;
    frame->event = code->event;
    frame->context = code->context;
    frame->saga = code->saga;
    frame->saga_object = code->saga_object;
    frame->older = code->older;
    frame->decode_failed = code->decode_failed;
    frame->part = code->part;
    frame->rows = code->rows;
    memcpy(frame->random, code->state->random, sizeof(frame->random));
    frame->fault = code->fault;
    frame->caller = limits_enter(code->L);
}

static void frame_restore(struct handler_code *code, const struct frame *frame)
{
    code->call = frame->call;
    if (frame->call == NULL)
        return;
    code->event = frame->event;
    code->context = frame->context;
    code->saga = frame->saga;
    code->saga_object = frame->saga_object;
    code->older = frame->older;
    code->decode_failed = frame->decode_failed;
    code->part = frame->part;
    code->rows = frame->rows;
    memcpy(code->state->random, frame->random, sizeof(frame->random));
    code->fault = frame->fault;
    limits_of(code->L)->caller = frame->caller;
}

/* Runs one of the entry functions on the job. */
enum status handler_run(struct handler_code *code, enum handler_entry entry,
                        struct handler_job *job, struct diag *diag)
{
    struct lua_failure failure;
    enum lua_outcome outcome;
    struct frame frame;
    enum status status;
    bool told;

    frame_save(code, &frame);
    job->code = code;
    code->rows = NULL;
    code->older = NULL;
    if (judge(code, entry, job) != STATUS_OK) {
        frame_restore(code, &frame);
        return STATUS_FAILED;
    }
    code->call = job->call;
    code->event = code->context = code->saga_object = NULL;
    code->saga = job->saga;
    code->decode_failed = false;
    code->part = 0;
    code->fault = (struct handler_fault){.where = ""};
    script_state_seed(code->state, seed_of(job->call->message));
    lua_rawgeti(code->L, LUA_REGISTRYINDEX, code->entries[entry]);
    lua_pushlightuserdata(code->L, job);
    /* inside of a call it is still the outer one's attempt */
    told = code->slot != NULL && frame.call == NULL;
    if (told)
        tell_slot(job, entry);
    outcome = lua_call_protected(code->L, 1, 0, &failure);
    if (told)
        attempt_slot_end(code->slot);
    if (code->rows != NULL)
        handler_code_close_rows(code);
    if (job->call->sql != NULL)
        handler_sql_deadline(job->call->sql, 0);
    if (outcome == LUA_CALL_OK && !job->failed) {
        frame_restore(code, &frame);
        return STATUS_OK;
    }
    status = outcome == LUA_CALL_OK
                 ? STATUS_FAILED
                 : report(code, &failure, job->failure, diag);
    if (status == STATUS_FAILED)
        add_where(job, entry);
    frame_restore(code, &frame);
    return status;
}

bool handler_run_fails_as_asked(struct handler_code *code,
                                const struct handler_call *call,
                                struct failure *failure)
{
    for (size_t i = 0; i < code->nasked; i++) {
        struct handler_failure_asked *asked = &code->asked[i];

        if (asked->times == 0 ||
            strcmp(asked->consumer, call->declaration->name) != 0 ||
            !text_equal(text_of(asked->type), call->message->type))
            continue;
        asked->times--;
        failure_set(failure, false, "error", "failure asked for by the test");
        return true;
    }
    return false;
}

/* Ends an entry with a failure of its own making. */
int handler_run_fail(struct handler_job *job)
{
    job->failed = true;
    return 0;
}
