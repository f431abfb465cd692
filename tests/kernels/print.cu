// `printf` in a kernel: formats and returned values, which go to `counts`, and output of several threads.
extern "C" __global__ void print_formats(const char* text, const char* nothing, int* counts)
{
    char word[4] = {'a', 'b', 'c', 0};
    int i = 0;
    counts[i++] = printf("plain text\n");
    counts[i++] = printf("%d|%i|%u|%x|%X|%o|%c|%%|\n", -5, 42, 4000000000u, 0xbeefu, 0xbeefu, 8u, 'A');
    counts[i++] = printf("%5d|%-5d|%05d|%+d|% d|%.3d|%8.3d|\n", 42, 42, -42, 42, 42, 7, 7);
    counts[i++] = printf("%lld|%llu|%llx|%ld|%hd|%lu|\n", -1234567890123ll, 18446744073709551615ull, 0xdeadbeef0001ull,
                         -77l, (short)-3, 5000000000ul);
    counts[i++] = printf("%f|%.2f|%8.3f|%-10.1f|%e|%.3e|%g|%g|%g|%G|\n", 1.5, 0.125, -1.0, 2.25, 12345.678, 1e-7, 0.0001,
                         1e10, 100000.0, 1e-10);
    counts[i++] = printf("%s|%8s|%-8s|%.2s|%s|\n", text, text, text, text, word);
    printf("%*d|%-*d|\n", 6, 42, 6, 42);
    counts[i++] = printf("%d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d\n",
                         1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
                         28, 29, 30, 31, 32);
    counts[i++] = printf("%f %f %f %d\n", (float)1.0f / 3.0f, -1.0f / 0.0f, __int_as_float(0x7fffffff), (char)-1);
    counts[i++] = printf("%#x %#o %a\n", 255, 8, 1.5);
    counts[i++] = printf("no newline");
    counts[i++] = printf(nothing);
}

// One line per thread: block, thread, and a pointer computed from the argument.
extern "C" __global__ void print_threads(const int* where)
{
    printf("block %d thread %3d at %p\n", blockIdx.x, threadIdx.x, where + threadIdx.x);
}

// Only some threads print, in both arms of a branch.
extern "C" __global__ void print_branches()
{
    if (threadIdx.x % 3 == 0)
        printf("third %d\n", threadIdx.x);
    else if (threadIdx.x == 7)
        printf("seven %s\n", "is odd");
}

// Conversions that the `printf` of a GPU treats in another way than C, or does not know.
extern "C" __global__ void print_unusual(const char* nothing, int more)
{
    printf("[%hd] [%hhd] [%hx] [%hhx] [%hu] [%hhu]\n", 70000 + more, 300 + more, -1 - more, -1 - more, -1 - more, 376 + more);
    printf("[%s] [%8s]\n", nothing, nothing);
    printf("[%d] [%zu]\n", 1 + more, 2ull);
    printf("[%d] [%jd]\n", 3 + more, 4ll);
    printf("[%d] [%td]\n", 5 + more, 6ll);
    printf("[%d] [%.*f]\n", 7 + more, 2, 1.25);
    printf("[%k] [%d] [%n]\n", 8 + more, nothing);
    printf("%");
    printf(" the end\n");
}
