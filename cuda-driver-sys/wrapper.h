/* The headers that the raw bindings are made from. */
#include <cuda.h>
