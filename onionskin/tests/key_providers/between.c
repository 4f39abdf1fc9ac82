// A library between Onionskin and SoftHSM, which does wrong what BETWEEN names: tokens fail in ways
// in which SoftHSM never does. Each login is a line in the file that LOGINS names.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long word;
typedef word (*call)(void *, void *, void *, void *, void *);
struct functions { unsigned char version[2]; call all[68]; };
enum { GET_TOKEN_INFO = 6, FINALIZE = 1, LOGIN = 18, DECRYPT = 34 };

static struct functions *real, mine;

static int is(const char *fault) {
    const char *said = getenv("BETWEEN");
    return said && strcmp(said, fault) == 0;
}

static word login(void *a, void *b, void *c, void *d, void *e) {
    FILE *file = fopen(getenv("LOGINS"), "a");
    if (file) { fputs("login\n", file); fclose(file); }
    if (is("hangs")) sleep(60);
    if (is("locked")) return 0xA4;
    if (is("unclear login")) return 0x05;
    if (is("removed at login")) return 0x32;
    return real->all[LOGIN](a, b, c, d, e);
}

static word decrypt(void *a, void *b, void *c, void *d, void *e) {
    if (is("session lost")) return 0xB3;
    if (is("removed")) return 0x32;
    if (is("no mechanism")) return 0x70;
    if (is("crashes")) abort();
    return real->all[DECRYPT](a, b, c, d, e);
}

static word token_info(void *a, void *info, void *c, void *d, void *e) {
    word result = real->all[GET_TOKEN_INFO](a, info, c, d, e);
    // behind label, manufacturer, model and serial number
    word *flags = (word *)((char *)info + 96);
    if (is("final try")) *flags |= 0x20000;
    return result;
}

static word finalize(void *a, void *b, void *c, void *d, void *e) {
    if (is("crashes at its end")) abort();
    return real->all[FINALIZE](a, b, c, d, e);
}

word C_GetFunctionList(struct functions **list) {
    puts("a library that talks");
    void *library = dlopen("/usr/lib/softhsm/libsofthsm2.so", RTLD_NOW);
    word (*get)(struct functions **) = (word (*)(struct functions **))dlsym(library, "C_GetFunctionList");
    word result = get(&real);
    mine = *real;
    mine.all[FINALIZE] = finalize;
    mine.all[GET_TOKEN_INFO] = token_info;
    mine.all[LOGIN] = login;
    mine.all[DECRYPT] = decrypt;
    *list = &mine;
    return result;
}
