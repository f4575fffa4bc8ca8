#include "cli/cli.h"
#include "cli/operator.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "topic/message.h"
#include "topic/read_model_off.h"
#include "topic/read_model_topic.h"

#include "base/json.h"

#include <inttypes.h>
#include <time.h>

/* How long a switch that meets a host is tried again. */
#define TRY_FOR_US (10 * CLOCK_SECOND)

/* --- list ---------------------------------------------------------------- */

struct listing {
    struct output_table table;
    struct buffer json;
};

static void write_time(struct buffer *out, bool *first, const char *key,
                       int64_t at)
{
    char text[CLOCK_TEXT_SIZE];

    json_write_key(out, first, key);
    clock_format(at, text);
    if (at == 0)
        buffer_append_string(out, "null");
    else
        json_write_string(out, text_of(text));
}

static const char *state_of(const struct read_model_topic_row *row)
{
    if (row->off_at != 0)
        return "off, not emptied";
    return row->filled ? "on" : "on, being filled";
}

static void take_json(void *arg, const struct read_model_topic_row *row)
{
    struct listing *listing = arg;
    struct buffer *out = &listing->json;
    struct buffer name = BUFFER_EMPTY;
    bool first = true;

    buffer_printf(&name, TOPIC_READ_MODEL "%s", row->projection.data);
    buffer_append_string(out, out->len > 1 ? ",{" : "{");
    json_write_key(out, &first, "topic");
    json_write_string(out, buffer_text(&name));
    write_time(out, &first, "on_since", row->on_at);
    json_write_key(out, &first, "filled");
    buffer_append_string(out, row->filled ? "true" : "false");
    write_time(out, &first, "off_since", row->off_at);
    buffer_append_char(out, '}');
    buffer_free(&name);
}

static void take_cells(void *arg, const struct read_model_topic_row *row)
{
    struct listing *listing = arg;
    struct buffer name = BUFFER_EMPTY;
    char since[CLOCK_TEXT_SIZE];

    buffer_append_string(&name, TOPIC_READ_MODEL);
    buffer_append_text(&name, row->projection);
    clock_format(row->off_at != 0 ? row->off_at : row->on_at, since);
    output_cell(&listing->table, buffer_text(&name));
    output_cell_string(&listing->table, state_of(row));
    output_cell_string(&listing->table, since);
    buffer_free(&name);
}

static void print_table(struct cli *cli, struct listing *listing)
{
    if (output_table_rows(&listing->table) > 0) {
        output_table_end(&listing->table, cli->out);
        return;
    }
    output_table_free(&listing->table);
    if (!cli->quiet)
        fputs("no topic of read models is on\n", cli->err);
}

static enum status list(struct cli *cli, struct diag *diag)
{
    static const char *const headings[] = {"topic", "state", "since", NULL};
    struct listing listing = {.json = BUFFER_EMPTY};
    struct application app;
    enum status status = cli_open(cli, APPLICATION_READ_ONLY, &app, diag);

    if (status != STATUS_OK)
        return status;
    output_table_begin(&listing.table, headings, cli->color_out);
    buffer_append_char(&listing.json, '[');
    status = read_model_off_list(app.db, app.catalog,
                                 cli->json ? take_json : take_cells, &listing,
                                 diag);
    if (status == STATUS_OK && cli->json)
        fprintf(cli->out, "%s]\n", listing.json.data);
    if (status == STATUS_OK && !cli->json)
        print_table(cli, &listing);
    else
        output_table_free(&listing.table);
    buffer_free(&listing.json);
    application_close(&app);
    return status;
}

/* --- off ----------------------------------------------------------------- */

struct search {
    const char *name;
    bool found;
};

static void take_match(void *arg, const struct read_model_topic_row *row)
{
    struct search *search = arg;

    search->found |= text_equal(row->projection, text_of(search->name));
}

/* What the scripts would switch on again with the next start. */
static enum status check_scripts(const struct operator_session *session,
                                 const char *name, bool *declared,
                                 struct diag *diag)
{
    size_t count = 0;
    const struct declaration *all = script_declarations(session->scripts.script,
                                                        &count);

    *declared = false;
    for (size_t i = 0; i < count; i++) {
        const struct declaration *d = &all[i];
        const char *read = d->source == NULL
                               ? NULL
                               : read_model_topic_projection(d->source);

        if (read != NULL && strcmp(read, name) == 0)
            return diag_set(
                diag, STATUS_REFUSED,
                "%s '%.200s' of the scripts reads the topic " TOPIC_READ_MODEL
                "%.200s: take it out of them and unsubscribe it",
                declaration_consumer_type(d), d->name, name);
        if (strcmp(d->name, name) != 0)
            continue;
        if (d->topic)
            return diag_set(diag, STATUS_REFUSED,
                            "projection '%.200s' says `topic = true`: take "
                            "that out of the scripts, else the next host "
                            "switches its topic on again",
                            name);
        *declared = true;
    }
    return STATUS_OK;
}

/* A name that nobody knows is a slip of the pen. */
static enum status check_name(const struct operator_session *session,
                              const char *name, bool declared,
                              struct diag *diag)
{
    struct search search = {.name = name};
    const char *near = NULL;
    enum status status = STATUS_OK;

    if (!declared)
        status = read_model_off_list(session->env.db, session->env.catalog,
                                     take_match, &search, diag);
    if (status != STATUS_OK || declared || search.found)
        return status;
    near = text_nearest(name, session->declared);
    return diag_set(diag, STATUS_USAGE,
                    "no projection '%.200s' has a topic that is on%s%s%s; "
                    "`moontide topics` lists them",
                    name, near != NULL ? "; did you mean '" : "",
                    near != NULL ? near : "", near != NULL ? "'?" : "");
}

static enum status switch_off(const struct operate_env *env, const char *name,
                              bool *switched, struct diag *diag)
{
    int64_t end = clock_monotonic() + TRY_FOR_US;
    enum status status;

    do {
        status = read_model_switch_off(env->db, env->catalog, name,
                                       clock_now(env->clock), switched, diag);
    } while (status == STATUS_CONFLICT && clock_monotonic() < end);
    return status;
}

/* Half of the time is for who applies meanwhile. */
static void rest(int64_t us)
{
    const struct timespec pause = {.tv_sec = us / CLOCK_SECOND,
                                   .tv_nsec = us % CLOCK_SECOND * 1000};

    nanosleep(&pause, NULL);
}

static enum status empty(struct cli *cli, const struct operate_env *env,
                         const char *name, int64_t *deleted, struct diag *diag)
{
    const volatile sig_atomic_t *stop = stop_on_signals();
    int64_t end = clock_monotonic() + TRY_FOR_US;
    struct progress shown;
    bool left = true;
    enum status status = STATUS_OK;

    *deleted = 0;
    progress_start(&shown, cli, "messages");
    while (left) {
        int64_t began = clock_monotonic();
        int64_t some;

        if (*stop) {
            status = diag_set(diag, STATUS_STOPPED, "stopped by a signal");
            break;
        }
        status = read_model_off_empty(env->db, env->catalog, name, &some, &left,
                                      diag);
        if (status == STATUS_CONFLICT && began < end) {
            left = true;
            continue;
        }
        if (status != STATUS_OK)
            break;
        *deleted += some;
        progress_show(&shown, *deleted);
        end = clock_monotonic() + TRY_FOR_US;
        if (left)
            rest(clock_monotonic() - began);
    }
    progress_end(&shown);
    if (status == STATUS_OK)
        return status;
    return diag_append(diag,
                       " (the topic is off, and %" PRId64
                       " of its messages were removed before that; doing it "
                       "again goes on with the rest)",
                       *deleted);
}

static void print_off(struct cli *cli, const char *name, bool changed,
                      int64_t deleted)
{
    struct buffer topic = BUFFER_EMPTY, out = BUFFER_EMPTY;
    bool first = true;

    buffer_printf(&topic, TOPIC_READ_MODEL "%s", name);
    if (cli->json) {
        buffer_append_char(&out, '{');
        json_write_key(&out, &first, "topic");
        json_write_string(&out, buffer_text(&topic));
        json_write_key(&out, &first, "changed");
        buffer_append_string(&out, changed ? "true" : "false");
        json_write_key(&out, &first, "deleted");
        buffer_printf(&out, "%" PRId64 "}\n", deleted);
    } else if (!cli->quiet) {
        buffer_append_string(&out, "topic '");
        output_safe(&out, buffer_text(&topic));
        buffer_append_string(&out, "' is off");
        if (changed) {
            buffer_append_string(&out, "; removed: ");
            operator_count(&out, deleted, "message");
            buffer_append_string(&out, "\n");
        } else {
            buffer_append_string(&out, ": nothing changed\n");
        }
    }
    fwrite(buffer_text(&out).data, 1, out.len, cli->out);
    buffer_free(&out);
    buffer_free(&topic);
}

static enum status off_with(struct cli *cli,
                            const struct operator_session *session,
                            const char *name, struct diag *diag)
{
    bool declared, switched = false;
    int64_t deleted = 0;
    enum status status = check_scripts(session, name, &declared, diag);

    if (status == STATUS_OK)
        status = check_name(session, name, declared, diag);
    if (status == STATUS_OK)
        status = switch_off(&session->env, name, &switched, diag);
    if (status == STATUS_OK)
        status = empty(cli, &session->env, name, &deleted, diag);
    if (status == STATUS_OK)
        print_off(cli, name, switched || deleted > 0, deleted);
    return status;
}

static enum status off(struct cli *cli, struct diag *diag)
{
    struct operator_session session;
    const char *name;
    enum status status;

    if (cli->nargs < 2)
        return diag_set(diag, STATUS_USAGE,
                        "topics off takes the name of a topic; moontide topics "
                        "lists them");
    name = read_model_topic_projection(cli->args[1]);
    if (name == NULL)
        name = cli->args[1];
    status = operator_open(cli, APPLICATION_ROWS, &session, diag);
    if (status != STATUS_OK)
        return status;
    if (!session.loaded)
        status = diag_set(diag, STATUS_REFUSED,
                          "the scripts cannot be loaded, and whether they read "
                          "the topic " TOPIC_READ_MODEL
                          "%.200s is not known; `moontide check` says why",
                          name);
    if (status == STATUS_OK)
        status = off_with(cli, &session, name, diag);
    operator_close(&session);
    return status;
}

enum status cli_topics(struct cli *cli, struct diag *diag)
{
    bool offs = cli->nargs > 0 && strcmp(cli->args[0], "off") == 0;

    if (!offs && cli->nargs > 1)
        return diag_set(diag, STATUS_USAGE, "topics list takes no name");
    return offs ? off(cli, diag) : list(cli, diag);
}
