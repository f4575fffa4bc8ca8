#include "cli/operator.h"

#include "base/memory.h"
#include "cli/output.h"
#include "run/operate_json.h"

/* --- opening -------------------------------------------------------------- */

static void take_declared(struct operator_session *session)
{
    size_t count = 0;
    const struct declaration *declarations = script_declarations(
        session->scripts.script, &count);

    session->declared = mem_alloc((count + 1) * sizeof(*session->declared));
    session->types = mem_alloc((count + 1) * sizeof(*session->types));
    session->sources = mem_alloc((count + 1) * sizeof(*session->sources));
    session->fingerprints = mem_alloc((count + 1) *
                                      sizeof(struct fingerprint *));
    for (size_t i = 0; i < count; i++) {
        session->declared[i] = declarations[i].name;
        session->types[i] = declaration_consumer_type(&declarations[i]);
        session->sources[i] = declarations[i].source;
        if (declaration_is_projection(&declarations[i]))
            session->fingerprints[i] = &declarations[i].fingerprint;
    }
    session->declared[count] = NULL;
}

enum status operator_open(struct cli *cli, unsigned need,
                          struct operator_session *session, struct diag *diag)
{
    struct diag ignored;
    enum status status;

    *session = (struct operator_session){.loaded = false};
    status = cli_open(cli, need, &session->app, diag);
    if (status != STATUS_OK)
        return status;
    /* an operator can act although a script is broken */
    session->loaded = cli_open(cli, APPLICATION_SCRIPTS, &session->scripts,
                               &ignored) == STATUS_OK;
    if (session->loaded)
        take_declared(session);
    session->env = (struct operate_env){
        .db = session->app.db,
        .catalog = session->app.catalog,
        .names = &session->app.settings->names,
        .clock = &session->app.clock,
        .notify = session->app.settings->notify,
        .declared = session->declared,
        .types = session->types,
        .sources = session->sources,
        .fingerprints = session->fingerprints,
    };
    return STATUS_OK;
}

void operator_close(struct operator_session *session)
{
    if (session->loaded)
        application_close(&session->scripts);
    application_close(&session->app);
    mem_free(session->declared);
    mem_free(session->types);
    mem_free(session->sources);
    mem_free(session->fingerprints);
}

/* --- telling -------------------------------------------------------------- */

void operator_count(struct buffer *out, int64_t count, const char *thing)
{
    output_grouped(out, count);
    buffer_printf(out, " %s%s", thing, count == 1 ? "" : "s");
}

void operator_print(struct cli *cli, const struct operate_result *result,
                    const char *sentence)
{
    struct buffer out = BUFFER_EMPTY;
    struct buffer line = BUFFER_EMPTY;

    if (cli->json) {
        operate_json_result(&out, result);
        buffer_append_char(&out, '\n');
    } else if (!cli->quiet) {
        buffer_printf(&line, "%s '%s' %s", result->type, result->name,
                      result->changed ? sentence : result->unchanged);
        output_safe(&out, buffer_text(&line));
        buffer_append_string(&out,
                             result->changed ? "\n" : ": nothing changed\n");
    }
    fwrite(buffer_text(&out).data, 1, out.len, cli->out);
    buffer_free(&line);
    buffer_free(&out);
}
