#include "db/mysql_url.h"

#include <stddef.h>

#define FORM "mysql://user:password@host:port/database"

#define PORT_MAX    65535u
#define TIMEOUT_MAX 3600u

static const char *const schemes[] = {"mysql://", "mariadb://"};

static size_t scheme_length(const char *url)
{
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        if (strncmp(url, schemes[i], strlen(schemes[i])) == 0)
            return strlen(schemes[i]);
    }
    return 0;
}

bool mysql_url_accepts(const char *url)
{
    return scheme_length(url) > 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* `what` names the part, because its text may be the password. */
static enum status decode(struct mysql_url *parsed, struct text raw,
                          const char *what, const char **out, struct diag *diag)
{
    char *to = arena_alloc(&parsed->arena, raw.len + 1);
    size_t len = 0;

    for (size_t i = 0; i < raw.len; i++) {
        char c = raw.data[i];

        if (c == '%') {
            int high = raw.len - i > 2 ? hex_digit(raw.data[i + 1]) : -1;
            int low = raw.len - i > 2 ? hex_digit(raw.data[i + 2]) : -1;

            if (high < 0 || low < 0)
                return diag_set(diag, STATUS_CONFIG,
                                "the database URL: %s has a %% without two "
                                "hexadecimal digits behind it; a %% itself is "
                                "written %%25",
                                what);
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (c == '\0')
            return diag_set(diag, STATUS_CONFIG,
                            "the database URL: %s has a NUL byte", what);
        to[len++] = c;
    }
    to[len] = '\0';
    *out = to;
    return STATUS_OK;
}

/* The part up to one of `ends`; *text goes behind it (and on the end sign). */
static struct text take_until(struct text *text, const char *ends)
{
    struct text part = {text->data, 0};

    while (part.len < text->len && strchr(ends, part.data[part.len]) == NULL)
        part.len++;
    text->data += part.len;
    text->len -= part.len;
    return part;
}

static void skip(struct text *text, size_t count)
{
    text->data += count;
    text->len -= count;
}

/* --- user, host, port ----------------------------------------------------- */

static enum status parse_user(struct mysql_url *parsed, struct text user,
                              struct diag *diag)
{
    struct text name = take_until(&user, ":");
    enum status status = STATUS_OK;

    if (name.len > 0)
        status = decode(parsed, name, "the user", &parsed->user, diag);
    if (status == STATUS_OK && user.len > 0) {
        skip(&user, 1);
        status = decode(parsed, user, "the password", &parsed->password, diag);
    }
    return status;
}

static enum status parse_number(struct text text, const char *what,
                                unsigned most, unsigned *number,
                                struct diag *diag)
{
    unsigned value = 0;
    bool good = text.len > 0;

    for (size_t i = 0; good && i < text.len; i++) {
        good = text.data[i] >= '0' && text.data[i] <= '9';
        value = value * 10 + (unsigned)(text.data[i] - '0');
        good = good && value <= most;
    }
    if (!good || value == 0)
        return diag_set(diag, STATUS_CONFIG,
                        "the database URL: the %s must be a number from 1 to "
                        "%u, not \"" TEXT_FORMAT "\"",
                        what, most, TEXT_ARGS(text));
    *number = value;
    return STATUS_OK;
}

static enum status parse_host(struct mysql_url *parsed, struct text rest,
                              struct diag *diag)
{
    struct text host;
    enum status status = STATUS_OK;

    if (rest.len > 0 && rest.data[0] == '[') {
        skip(&rest, 1);
        host = take_until(&rest, "]");
        if (rest.len == 0)
            return diag_set(diag, STATUS_CONFIG,
                            "the database URL: the [ before an IPv6 address "
                            "has no ]");
        skip(&rest, 1);
        if (rest.len > 0 && rest.data[0] != ':')
            return diag_set(diag, STATUS_CONFIG,
                            "the database URL: only :port may follow the ] of "
                            "an IPv6 address");
    } else {
        host = take_until(&rest, ":");
        if (rest.len > 0 && memchr(rest.data + 1, ':', rest.len - 1) != NULL)
            return diag_set(diag, STATUS_CONFIG,
                            "the database URL: an IPv6 address is written in "
                            "brackets, and a : in a user or password is "
                            "written %%3A");
    }
    if (host.len > 0)
        status = decode(parsed, host, "the host", &parsed->host, diag);
    if (status == STATUS_OK && rest.len > 0) {
        skip(&rest, 1);
        status = parse_number(rest, "port", PORT_MAX, &parsed->port, diag);
    }
    return status;
}

static enum status parse_authority(struct mysql_url *parsed, struct text part,
                                   struct diag *diag)
{
    const char *at = part.len > 0 ? memrchr(part.data, '@', part.len) : NULL;
    struct text user = {part.data, 0};
    enum status status = STATUS_OK;

    if (at != NULL) {
        user.len = (size_t)(at - part.data);
        skip(&part, user.len + 1);
        status = parse_user(parsed, user, diag);
    }
    return status == STATUS_OK ? parse_host(parsed, part, diag) : status;
}

/* --- options -------------------------------------------------------------- */

enum option_kind { OPTION_TEXT, OPTION_TIMEOUT, OPTION_TLS, OPTION_VERIFY };

static const struct {
    const char *name; /* with _ for - */
    enum option_kind kind;
    size_t offset; /* OPTION_TEXT: of the const char * */
} options[] = {
    {"user", OPTION_TEXT, offsetof(struct mysql_url, user)},
    {"password", OPTION_TEXT, offsetof(struct mysql_url, password)},
    {"socket", OPTION_TEXT, offsetof(struct mysql_url, socket)},
    {"ssl_ca", OPTION_TEXT, offsetof(struct mysql_url, ssl_ca)},
    {"ssl_cert", OPTION_TEXT, offsetof(struct mysql_url, ssl_cert)},
    {"ssl_key", OPTION_TEXT, offsetof(struct mysql_url, ssl_key)},
    {"connect_timeout", OPTION_TIMEOUT, 0},
    {"ssl_mode", OPTION_TLS, 0},
    {"tls_verify", OPTION_VERIFY, 0},
};

static const struct {
    const char *word;
    enum mysql_tls tls;
} tls_words[] = {
    {"disabled", MYSQL_TLS_DISABLED},
    {"preferred", MYSQL_TLS_PREFERRED},
    {"required", MYSQL_TLS_REQUIRED},
    {"verify_ca", MYSQL_TLS_VERIFY_CA},
    {"verify_identity", MYSQL_TLS_VERIFY_IDENTITY},
};

static bool same_word(struct text text, const char *word)
{
    if (text.len != strlen(word))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i] == '-' ? '_' : text.data[i];

        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if (c != word[i])
            return false;
    }
    return true;
}

static enum status parse_tls(struct mysql_url *parsed, struct text value,
                             struct diag *diag)
{
    for (size_t i = 0; i < sizeof(tls_words) / sizeof(tls_words[0]); i++) {
        if (same_word(value, tls_words[i].word)) {
            parsed->tls = tls_words[i].tls;
            return STATUS_OK;
        }
    }
    return diag_set(diag, STATUS_CONFIG,
                    "the database URL: ssl-mode is disabled, preferred, "
                    "required, verify_ca or verify_identity, not "
                    "\"" TEXT_FORMAT "\"",
                    TEXT_ARGS(value));
}

static enum status parse_verify(struct mysql_url *parsed, struct text value,
                                struct diag *diag)
{
    if (same_word(value, "true") || same_word(value, "1")) {
        parsed->tls = MYSQL_TLS_VERIFY_IDENTITY;
        return STATUS_OK;
    }
    if (same_word(value, "false") || same_word(value, "0"))
        return STATUS_OK;
    return diag_set(diag, STATUS_CONFIG,
                    "the database URL: tls_verify is true or false, not "
                    "\"" TEXT_FORMAT "\"",
                    TEXT_ARGS(value));
}

static enum status parse_option(struct mysql_url *parsed, struct text option,
                                struct diag *diag)
{
    struct text name = take_until(&option, "=");
    size_t i = 0;
    size_t count = sizeof(options) / sizeof(options[0]);

    if (option.len > 0)
        skip(&option, 1);
    while (i < count && !same_word(name, options[i].name))
        i++;
    if (i == count)
        return diag_set(diag, STATUS_CONFIG,
                        "the database URL: there is no option \"" TEXT_FORMAT
                        "\"; known are user, password, socket, "
                        "connect_timeout, ssl-mode, tls_verify, ssl_ca, "
                        "ssl_cert and ssl_key",
                        TEXT_ARGS(name));
    switch (options[i].kind) {
    case OPTION_TIMEOUT:
        return parse_number(option, "connect_timeout", TIMEOUT_MAX,
                            &parsed->connect_timeout, diag);
    case OPTION_TLS:
        return parse_tls(parsed, option, diag);
    case OPTION_VERIFY:
        return parse_verify(parsed, option, diag);
    case OPTION_TEXT:
        break;
    }
    return decode(parsed, option, options[i].name,
                  (const char **)((char *)parsed + options[i].offset), diag);
}

static enum status parse_options(struct mysql_url *parsed, struct text rest,
                                 struct diag *diag)
{
    enum status status = STATUS_OK;

    while (status == STATUS_OK && rest.len > 0) {
        struct text option;

        skip(&rest, 1); /* ? or & */
        option = take_until(&rest, "&");
        if (option.len > 0)
            status = parse_option(parsed, option, diag);
    }
    return status;
}

/* --- the whole ------------------------------------------------------------ */

static enum status check(const struct mysql_url *parsed, struct diag *diag)
{
    if (parsed->database == NULL)
        return diag_set(diag, STATUS_CONFIG,
                        "the database URL names no database; write " FORM);
    if (strchr(parsed->database, '/') != NULL)
        return diag_set(diag, STATUS_CONFIG,
                        "the database URL: \"%s\" cannot be a database's "
                        "name; write " FORM,
                        parsed->database);
    if (parsed->socket != NULL && parsed->host != NULL &&
        strcmp(parsed->host, "localhost") != 0)
        return diag_set(diag, STATUS_CONFIG,
                        "the database URL has the host %s and a socket; a "
                        "socket is on this machine: leave the host out",
                        parsed->host);
    if (parsed->tls == MYSQL_TLS_VERIFY_CA && parsed->ssl_ca == NULL)
        return diag_set(diag, STATUS_CONFIG,
                        "the database URL: ssl-mode=verify_ca needs ssl_ca, "
                        "the file of the authority to trust");
    if ((parsed->ssl_cert == NULL) != (parsed->ssl_key == NULL))
        return diag_set(diag, STATUS_CONFIG,
                        "the database URL: ssl_cert and ssl_key come "
                        "together");
    return STATUS_OK;
}

enum status mysql_url_parse(const char *url, struct mysql_url *parsed,
                            struct diag *diag)
{
    struct text rest = text_of(url);
    struct text part;
    enum status status;

    *parsed = (struct mysql_url){.arena = ARENA_EMPTY,
                                 .connect_timeout = MYSQL_URL_CONNECT_TIMEOUT};
    skip(&rest, scheme_length(url));
    part = take_until(&rest, "/?");
    status = parse_authority(parsed, part, diag);
    if (status == STATUS_OK && rest.len > 0 && rest.data[0] == '/') {
        skip(&rest, 1);
        part = take_until(&rest, "?");
        if (part.len > 0)
            status = decode(parsed, part, "the database", &parsed->database,
                            diag);
    }
    if (status == STATUS_OK)
        status = parse_options(parsed, rest, diag);
    return status == STATUS_OK ? check(parsed, diag) : status;
}

void mysql_url_free(struct mysql_url *parsed)
{
    arena_free(&parsed->arena);
}
