/* A library with the six exports that take a record by value. It stores their arguments until abi_seen takes them. */

#include <stddef.h>
#include <string.h>

#ifdef _WIN32
#define API __declspec(dllexport)
#define CALL __stdcall
#else
#define API __attribute__((visibility("default")))
#define CALL
#endif

/* The records, with the same layout as in cuda.h. */
typedef struct {
    char reserved[64];
} Handle;

typedef struct {
    unsigned int type;
    union {
        int id;
        struct {
            unsigned char device, domain;
        } localized;
    };
} Location;

static unsigned char seen[256];
static size_t length;

static void note(const void *bytes, size_t size)
{
    if (length + size <= sizeof seen) {
        memcpy(seen + length, bytes, size);
        length += size;
    }
}
#define NOTE(argument) note(&(argument), sizeof(argument))

/* Moves the stored arguments to `out`, without padding between them, and returns their length in bytes; 0 if they are
 * longer than `capacity`. */
API size_t CALL abi_seen(unsigned char *out, size_t capacity)
{
    size_t size = length;
    if (size > capacity) {
        return 0;
    }
    memcpy(out, seen, size);
    length = 0;
    return size;
}

API unsigned int CALL cuInit(unsigned int flags)
{
    (void)flags;
    return 0;
}

API unsigned int CALL cuIpcOpenEventHandle(void **event, Handle handle)
{
    *event = (void *)0x1001;
    NOTE(handle);
    return 1001;
}

API unsigned int CALL cuIpcOpenMemHandle(unsigned long long *pointer, Handle handle, unsigned int flags)
{
    *pointer = 0x1002;
    NOTE(handle);
    NOTE(flags);
    return 1002;
}

API unsigned int CALL cuIpcOpenMemHandle_v2(unsigned long long *pointer, Handle handle, unsigned int flags)
{
    *pointer = 0x100000003;
    NOTE(handle);
    NOTE(flags);
    return 1003;
}

API unsigned int CALL cuMemAdvise_v2(unsigned long long pointer, size_t count, unsigned int advice, Location location)
{
    NOTE(pointer);
    NOTE(count);
    NOTE(advice);
    NOTE(location);
    return 1004;
}

static void prefetch(unsigned long long pointer, size_t count, Location location, unsigned int flags, void *stream)
{
    NOTE(pointer);
    NOTE(count);
    NOTE(location);
    NOTE(flags);
    NOTE(stream);
}

API unsigned int CALL cuMemPrefetchAsync_v2(unsigned long long pointer, size_t count, Location location,
                                            unsigned int flags, void *stream)
{
    prefetch(pointer, count, location, flags, stream);
    return 1005;
}

API unsigned int CALL cuMemPrefetchAsync_v2_ptsz(unsigned long long pointer, size_t count, Location location,
                                                 unsigned int flags, void *stream)
{
    prefetch(pointer, count, location, flags, stream);
    return 1006;
}
