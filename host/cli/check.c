#include "cli/check_saga.h"
#include "cli/cli.h"
#include "cli/output.h"

#include "base/json.h"
#include "base/json_member.h"
#include "run/application.h"

#include <inttypes.h>

static void write_field_type(const struct declaration_field *field,
                             struct buffer *out)
{
    buffer_append_string(out, declaration_field_word(field->type));
    if (field->type == FIELD_DECIMAL)
        buffer_printf(out, "(%d, %d)", field->precision, field->scale);
}

/* --- JSON ---------------------------------------------------------------- */

static void write_texts(struct buffer *out, const struct text *texts,
                        size_t count)
{
    buffer_append_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        json_write_string(out, texts[i]);
    }
    buffer_append_char(out, ']');
}

static void write_words(struct buffer *out, const char *const *words)
{
    buffer_append_char(out, '[');
    for (size_t i = 0; words[i] != NULL; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        json_write_string(out, text_of(words[i]));
    }
    buffer_append_char(out, ']');
}

static void write_field(struct buffer *out,
                        const struct declaration_field *field)
{
    struct buffer type = BUFFER_EMPTY;
    bool first = true;

    write_field_type(field, &type);
    buffer_append_char(out, '{');
    json_member_string(out, &first, "name", field->name);
    json_member_text(out, &first, "type", buffer_text(&type));
    if (field->values != NULL) {
        json_write_key(out, &first, "values");
        write_words(out, field->values);
    }
    json_member_bool(out, &first, "unique", field->unique);
    json_member_bool(out, &first, "optional", field->optional);
    buffer_append_char(out, '}');
    buffer_free(&type);
}

static void write_fingerprint(struct buffer *out,
                              const struct fingerprint *fingerprint)
{
    bool first = true;

    buffer_append_char(out, '{');
    for (int p = 0; p < FINGERPRINT_PARTS; p++) {
        json_member_string(out, &first, fingerprint_part_word(p),
                           fingerprint->part[p]);
    }
    buffer_append_char(out, '}');
}

static const char *spent_word(const struct failure_policy *policy)
{
    return policy->decides ? "function" : error_policy_word(policy->on_error);
}

static void write_policy(struct buffer *out, bool *first,
                         const struct failure_policy *policy)
{
    const struct retry_policy *retry = &policy->retry;

    json_write_key(out, first, "retry");
    buffer_printf(out,
                  "{\"attempts\":%d,\"delay\":%.6g,\"factor\":%.6g,"
                  "\"max_delay\":%.6g,\"jitter\":%.6g}",
                  retry->attempts,
                  (double)retry->delay_us / (double)CLOCK_SECOND, retry->factor,
                  (double)retry->max_delay_us / (double)CLOCK_SECOND,
                  retry->jitter);
    json_member_string(out, first, "on_error", spent_word(policy));
}

/* What is compared at every start, and what follows from it. */
static void write_change(struct buffer *out, bool *first,
                         const struct declaration *declaration)
{
    json_member_int64(out, first, "revision", declaration->revision);
    json_member_string(out, first, "on_change",
                       declaration->rebuild_on_change ? "rebuild" : "halt");
    json_write_key(out, first, "fingerprint");
    write_fingerprint(out, &declaration->fingerprint);
}

static void write_start(struct buffer *out, bool *first,
                        const struct declaration *declaration)
{
    json_member_string(out, first, "start",
                       declaration->starts_now ? "now" : "beginning");
}

/* What every declaration has: its name, and where it stands. */
static void write_place(struct buffer *out, bool *first, const char *name,
                        const char *file, int line)
{
    json_member_string(out, first, "name", name);
    json_member_string(out, first, "file", file);
    json_member_int64(out, first, "line", line);
}

static void write_declaration(struct buffer *out,
                              const struct declaration *declaration)
{
    bool first = true;

    buffer_append_char(out, '{');
    json_member_string(out, &first, "kind",
                       declaration_kind_word(declaration->kind));
    write_place(out, &first, declaration->name, declaration->file,
                declaration->line);
    json_member_string(out, &first, "source", declaration->source);
    write_policy(out, &first, &declaration->policy);
    if (declaration_is_projection(declaration))
        write_change(out, &first, declaration);
    else
        write_start(out, &first, declaration);
    json_write_key(out, &first, "types");
    write_texts(out, declaration->types, declaration->ntypes);
    json_write_key(out, &first, "aggregates");
    write_texts(out, declaration->aggregates, declaration->naggregates);
    if (declaration->kind == DECLARATION_PROJECTION) {
        json_member_string(out, &first, "table", declaration->table);
        json_write_key(out, &first, "fields");
        buffer_append_char(out, '[');
        for (size_t i = 0; i < declaration->nfields; i++) {
            if (i > 0)
                buffer_append_char(out, ',');
            write_field(out, &declaration->fields[i]);
        }
        buffer_append_char(out, ']');
    } else if (declaration->kind == DECLARATION_SQL_PROJECTION) {
        json_member_bool(out, &first, "resettable", declaration->resettable);
    } else if (declaration->kind == DECLARATION_SAGA) {
        check_saga_write(out, &first, declaration);
    }
    if (declaration->tables_file != NULL) {
        json_member_string(out, &first, "tables", declaration->tables_file);
    }
    buffer_append_char(out, '}');
}

static void write_event_type(struct buffer *out, const struct event_type *type)
{
    bool first = true;

    buffer_append_char(out, '{');
    write_place(out, &first, type->name, type->file, type->line);
    json_member_int64(out, &first, "revision", type->revision);
    json_member_int64(out, &first, "oldest", type->oldest);
    json_write_key(out, &first, "into");
    write_texts(out, type->into, type->ninto);
    json_member_bool(out, &first, "checked", type->has_fields);
    buffer_append_char(out, '}');
}

static void write_aggregate(struct buffer *out,
                            const struct declaration *aggregate)
{
    bool first = true;

    buffer_append_char(out, '{');
    write_place(out, &first, aggregate->name, aggregate->file, aggregate->line);
    json_write_key(out, &first, "commands");
    write_texts(out, aggregate->commands, aggregate->ncommands);
    json_write_key(out, &first, "types");
    write_texts(out, aggregate->types, aggregate->ntypes);
    json_write_key(out, &first, "snapshot");
    if (aggregate->snapshot_every > 0)
        buffer_printf(out, "{\"every\":%" PRId64 ",\"version\":%d}}",
                      aggregate->snapshot_every, aggregate->snapshot_version);
    else
        buffer_append_string(out, "null}");
}

static void write_publisher(struct buffer *out,
                            const struct publisher *publisher)
{
    bool first = true;

    buffer_append_char(out, '{');
    write_place(out, &first, publisher->name, publisher->file, publisher->line);
    json_member_string(out, &first, "to", publisher->to); /* null: a function */
    buffer_append_char(out, '}');
}

static void write_json(const struct settings *settings,
                       const struct script *script, struct buffer *out)
{
    size_t count = 0;
    const struct declaration *declarations = script_declarations(script,
                                                                 &count);
    const char *const *warnings = script_warnings(script);
    const struct event_types *types = script_event_types(script);
    const struct publishers *publishers = script_publishers(script);
    size_t naggregates;
    const struct declaration *aggregates = script_aggregates(script,
                                                             &naggregates);

    buffer_append_string(out, "{\"configuration\":");
    settings_print(settings, true, out);
    buffer_append_string(out, ",\"declarations\":[");
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        write_declaration(out, &declarations[i]);
    }
    buffer_append_string(out, "],\"aggregates\":[");
    for (size_t i = 0; i < naggregates; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        write_aggregate(out, &aggregates[i]);
    }
    buffer_append_string(out, "],\"event_types\":[");
    for (size_t i = 0; i < types->count; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        write_event_type(out, &types->items[i]);
    }
    buffer_append_string(out, "],\"publishers\":[");
    for (size_t i = 0; i < publishers->count; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        write_publisher(out, &publishers->items[i]);
    }
    buffer_append_string(out, "],\"warnings\":[");
    for (size_t i = 0; warnings != NULL && warnings[i] != NULL; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        json_write_string(out, text_of(warnings[i]));
    }
    buffer_append_string(out, "]}\n");
}

/* --- text ---------------------------------------------------------------- */

static void print_texts(struct buffer *out, const char *label,
                        const struct text *texts, size_t count)
{
    if (count == 0)
        return;
    buffer_printf(out, "    %s", label);
    for (size_t i = 0; i < count; i++) {
        buffer_append_string(out, i > 0 ? ", " : " ");
        output_safe(out, texts[i]);
    }
    buffer_append_char(out, '\n');
}

static void print_fields(struct buffer *out,
                         const struct declaration *declaration)
{
    buffer_printf(out, "    table %s", declaration->table);
    for (size_t i = 0; i < declaration->nfields; i++) {
        const struct declaration_field *field = &declaration->fields[i];

        buffer_printf(out, "%s%s ", i > 0 ? ", " : ": ", field->name);
        write_field_type(field, out);
        for (size_t j = 0; field->values != NULL && field->values[j] != NULL;
             j++) {
            buffer_append_string(out, j > 0 ? ", " : "(");
            output_safe(out, text_of(field->values[j]));
        }
        buffer_append_string(out, field->values != NULL ? ")" : "");
        buffer_append_string(out, field->unique ? " unique" : "");
        buffer_append_string(out, field->optional ? " optional" : "");
    }
    buffer_append_char(out, '\n');
}

/* Only what the declaration says itself. */
static void print_policy(struct buffer *out, const struct failure_policy *own,
                         const struct failure_policy *common)
{
    const struct retry_policy *a = &own->retry, *b = &common->retry;
    bool retry = a->attempts != b->attempts || a->delay_us != b->delay_us ||
                 a->factor != b->factor || a->max_delay_us != b->max_delay_us ||
                 a->jitter != b->jitter;

    if (retry)
        buffer_printf(out,
                      "    attempts %d, the second after %g s, each delay %g "
                      "times the one before, at most %g s\n",
                      a->attempts, (double)a->delay_us / (double)CLOCK_SECOND,
                      a->factor,
                      (double)a->max_delay_us / (double)CLOCK_SECOND);
    if (own->decides || own->on_error != common->on_error)
        buffer_printf(out, "    on error %s\n", spent_word(own));
}

static void print_declaration(struct buffer *out,
                              const struct declaration *declaration,
                              const struct settings *settings)
{
    buffer_printf(out, "  %s %s (%s:%d)\n",
                  declaration_kind_word(declaration->kind), declaration->name,
                  declaration->file, declaration->line);
    buffer_printf(out, "    source %s\n", declaration->source);
    print_texts(out, "aggregates", declaration->aggregates,
                declaration->naggregates);
    print_texts(out, "types", declaration->types, declaration->ntypes);
    print_policy(out, &declaration->policy, &settings->policy);
    if (declaration->rebuild_on_change)
        buffer_append_string(out, "    rebuilt when it changes\n");
    if (declaration->kind == DECLARATION_SAGA)
        check_saga_print(out, declaration);
    if (declaration->kind == DECLARATION_LISTENER ||
        declaration->kind == DECLARATION_SAGA)
        buffer_printf(out, "    starts %s\n",
                      declaration->starts_now ? "now" : "at the beginning");
    if (declaration->kind == DECLARATION_SQL_PROJECTION &&
        !declaration->resettable)
        buffer_append_string(out, "    no reset: it cannot be rebuilt\n");
    if (declaration->kind == DECLARATION_PROJECTION)
        print_fields(out, declaration);
    else if (declaration->tables_file != NULL)
        buffer_printf(out, "    tables of %s\n", declaration->tables_file);
}

static void print_event_type(struct buffer *out, const struct event_type *type)
{
    buffer_append_string(out, "  event_type ");
    output_safe(out, text_of(type->name));
    buffer_printf(out, " (%s:%d)\n    revision %d", type->file, type->line,
                  type->revision);
    if (type->oldest < type->revision)
        buffer_printf(out, ", reads from %d", type->oldest);
    buffer_append_string(out,
                         type->has_fields ? ", payloads are checked\n" : "\n");
    print_texts(out, "into", type->into, type->ninto);
}

static void print_aggregate(struct buffer *out,
                            const struct declaration *aggregate)
{
    buffer_append_string(out, "  aggregate ");
    output_safe(out, text_of(aggregate->name));
    buffer_printf(out, " (%s:%d)\n", aggregate->file, aggregate->line);
    print_texts(out, "commands", aggregate->commands, aggregate->ncommands);
    print_texts(out, "types", aggregate->types, aggregate->ntypes);
    if (aggregate->snapshot_every > 0)
        buffer_printf(out, "    snapshot every %" PRId64 ", version %d\n",
                      aggregate->snapshot_every, aggregate->snapshot_version);
}

static void print_publisher(struct buffer *out,
                            const struct publisher *publisher)
{
    buffer_append_string(out, "  publisher ");
    output_safe(out, text_of(publisher->name));
    buffer_printf(out, " (%s:%d)\n    to ", publisher->file, publisher->line);
    output_safe(out,
                text_of(publisher->to != NULL ? publisher->to : "a function"));
    buffer_append_char(out, '\n');
}

static void print_settings(const struct settings *settings, struct buffer *out)
{
    struct buffer lines = BUFFER_EMPTY;

    buffer_printf(out, "Configuration (%s)\n",
                  settings->config_path != NULL ? settings->config_path
                                                : "no file");
    settings_print(settings, false, &lines);
    for (size_t at = 0; at < lines.len;) {
        size_t len = strcspn(lines.data + at, "\n");

        buffer_append_string(out, "  ");
        buffer_append(out, lines.data + at, len);
        buffer_append_char(out, '\n');
        at += len + 1;
    }
    buffer_free(&lines);
}

static void print_warnings(const char *const *warnings, const char *before,
                           struct buffer *out)
{
    for (size_t i = 0; warnings != NULL && warnings[i] != NULL; i++) {
        buffer_append_string(out, before);
        output_safe(out, text_of(warnings[i]));
        buffer_append_char(out, '\n');
    }
}

static void print_text(const struct settings *settings,
                       const struct script *script, struct buffer *out)
{
    size_t count = 0;
    const struct declaration *declarations = script_declarations(script,
                                                                 &count);
    const char *const *warnings = script_warnings(script);
    const struct event_types *types = script_event_types(script);
    const struct publishers *publishers = script_publishers(script);
    size_t naggregates;
    const struct declaration *aggregates = script_aggregates(script,
                                                             &naggregates);

    print_settings(settings, out);
    buffer_printf(out, "\nDeclarations (%s/)\n", settings->scripts);
    for (size_t i = 0; i < count; i++)
        print_declaration(out, &declarations[i], settings);
    for (size_t i = 0; i < naggregates; i++)
        print_aggregate(out, &aggregates[i]);
    for (size_t i = 0; i < types->count; i++)
        print_event_type(out, &types->items[i]);
    for (size_t i = 0; i < publishers->count; i++)
        print_publisher(out, &publishers->items[i]);
    if (count + naggregates + types->count + publishers->count == 0)
        buffer_append_string(out, "  none\n");
    if (warnings != NULL && warnings[0] != NULL)
        buffer_append_string(out, "\nWarnings\n");
    print_warnings(warnings, "  ", out);
    buffer_append_string(out, "\nConfiguration and scripts are good.\n");
}

enum status cli_check(struct cli *cli, struct diag *diag)
{
    struct application app;
    struct buffer out = BUFFER_EMPTY;
    enum status status = cli_open(cli, APPLICATION_SCRIPTS, &app, diag);

    if (status != STATUS_OK)
        return status;
    if (cli->json)
        write_json(app.settings, app.script, &out);
    else if (cli->quiet)
        print_warnings(script_warnings(app.script), "", &out);
    else
        print_text(app.settings, app.script, &out);
    fwrite(buffer_text(&out).data, 1, out.len, cli->out);
    buffer_free(&out);
    application_close(&app);
    return STATUS_OK;
}
