/* The C interface between Lockstep and its GDAL module, liblockstep_gdal.so, which is loaded when a file
 * needs it. */
#ifndef LOCKSTEP_IO_GDAL_MODULE_H
#define LOCKSTEP_IO_GDAL_MODULE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LOCKSTEP_GDAL_ABI 1

typedef struct {
  int64_t rows, cols;
  int bands;
  int has_transform;
  double transform[6];
  int has_nodata;
  double nodata;
  int crs_is_degrees;
  double metres_per_unit;
  const char* crs_wkt; /* Lives as long as the dataset. */
} LockstepGdalGrid;

typedef struct LockstepGdalDataset LockstepGdalDataset;

/* Functions return 0 or null on failure and then fill `error` with one line. */
typedef struct {
  int abi;
  LockstepGdalDataset* (*open)(const char* path, int band, LockstepGdalGrid* grid, char* error,
                               int error_size);
  /* Cells as float32; those that the file masks are NaN. */
  int (*read)(LockstepGdalDataset* dataset, int64_t row, int64_t col, int64_t rows, int64_t cols, float* out,
              char* error, int error_size);
  /* A GeoTIFF; `grid` gives size, georeference and nodata. */
  LockstepGdalDataset* (*create)(const char* path, const LockstepGdalGrid* grid, char* error, int error_size);
  int (*write)(LockstepGdalDataset* dataset, int64_t row, int64_t col, int64_t rows, int64_t cols,
               const float* values, char* error, int error_size);
  /* Always frees the dataset; 0 if what was written could not be flushed. */
  int (*close)(LockstepGdalDataset* dataset, char* error, int error_size);
  /* 1 if both texts mean the same CRS. */
  int (*same_crs)(const char* wkt, const char* other_wkt);
  int (*to_lon_lat)(const char* wkt, double x, double y, double* lon, double* lat, char* error,
                    int error_size);
  /* Writes the WKT of an EPSG code. */
  int (*crs_from_epsg)(int code, char* wkt, int wkt_size, char* error, int error_size);
} LockstepGdalApi;

/* The module's only symbol. */
const LockstepGdalApi* lockstep_gdal_api(void);

#ifdef __cplusplus
}
#endif

#endif
