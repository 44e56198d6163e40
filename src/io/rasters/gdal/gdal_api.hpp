// GDAL's C interface, loaded at run time: the program builds and runs where GDAL is absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/dynamic_library.hpp"

namespace lockstep::io {

using GdalHandle = void*;
using GdalErrorHandler = void (*)(int error_class, int number, const char* message);

// F(result, name, (parameters)) for every function that Lockstep calls; all exist from GDAL 3.0 on.
#define LOCKSTEP_GDAL_FUNCTIONS(F)                                                                          \
  F(void, CPLPushErrorHandler, (GdalErrorHandler))                                                          \
  F(void, CPLPopErrorHandler, ())                                                                           \
  F(void, CPLErrorReset, ())                                                                                \
  F(const char*, CPLGetLastErrorMsg, ())                                                                    \
  F(int, CPLGetLastErrorType, ())                                                                           \
  F(const char*, CPLGetConfigOption, (const char* key, const char* otherwise))                              \
  F(void, VSIFree, (void*))                                                                                 \
  F(void*, CPLZLibInflate,                                                                                  \
    (const void* packed, size_t packed_bytes, void* bytes, size_t room, size_t* length))                    \
  F(void, GDALAllRegister, ())                                                                              \
  F(void, GDALSetCacheMax64, (int64_t bytes))                                                               \
  F(GdalHandle, GDALGetDriverByName, (const char*))                                                         \
  F(int, GDALGetDriverCount, ())                                                                            \
  F(GdalHandle, GDALGetDriver, (int number))                                                                \
  F(void, GDALDeregisterDriver, (GdalHandle driver))                                                        \
  F(void, GDALDestroyDriver, (GdalHandle driver))                                                           \
  F(int, GDALRegisterDriver, (GdalHandle driver))                                                           \
  F(const char*, GDALGetDriverShortName, (GdalHandle driver))                                               \
  F(GdalHandle, GDALOpenEx,                                                                                 \
    (const char* path, unsigned flags, const char* const* drivers, const char* const* options,              \
     const char* const* siblings))                                                                          \
  F(GdalHandle, GDALCreate,                                                                                 \
    (GdalHandle driver, const char* path, int cols, int rows, int bands, int type, char** options))         \
  F(GdalHandle, GDALCreateCopy,                                                                             \
    (GdalHandle driver, const char* path, GdalHandle source, int strict, char** options,                    \
     int (*progress)(double, const char*, void*), void* data))                                              \
  F(int, GDALBuildOverviews,                                                                                \
    (GdalHandle dataset, const char* resampling, int count, const int* factors, int band_count,             \
     const int* bands, int (*progress)(double, const char*, void*), void* data))                            \
  F(void, GDALFlushCache, (GdalHandle dataset))                                                             \
  F(void, GDALClose, (GdalHandle dataset))                                                                  \
  F(GdalHandle, GDALGetDatasetDriver, (GdalHandle dataset))                                                 \
  F(int, GDALGetRasterXSize, (GdalHandle dataset))                                                          \
  F(int, GDALGetRasterYSize, (GdalHandle dataset))                                                          \
  F(int, GDALGetRasterCount, (GdalHandle dataset))                                                          \
  F(int, GDALGetGeoTransform, (GdalHandle dataset, double* six))                                            \
  F(int, GDALSetGeoTransform, (GdalHandle dataset, double* six))                                            \
  F(const char*, GDALGetProjectionRef, (GdalHandle dataset))                                                \
  F(int, GDALSetProjection, (GdalHandle dataset, const char* wkt))                                          \
  F(const char*, GDALGetMetadataItem, (GdalHandle object, const char* name, const char* domain))            \
  F(int, GDALSetMetadataItem, (GdalHandle object, const char* name, const char* value, const char* domain)) \
  F(void, GDALSetDescription, (GdalHandle object, const char* text))                                        \
  F(const char*, GDALGetDescription, (GdalHandle object))                                                   \
  F(int, GDALSetRasterUnitType, (GdalHandle band, const char* unit))                                        \
  F(const char*, GDALGetRasterUnitType, (GdalHandle band))                                                  \
  F(GdalHandle, GDALGetRasterBand, (GdalHandle dataset, int number))                                        \
  F(int, GDALGetRasterDataType, (GdalHandle band))                                                          \
  F(int, GDALGetDataTypeSizeBytes, (int type))                                                              \
  F(int, GDALDataTypeIsComplex, (int type))                                                                 \
  F(void, GDALGetBlockSize, (GdalHandle band, int* cols, int* rows))                                        \
  F(double, GDALGetRasterNoDataValue, (GdalHandle band, int* exists))                                       \
  F(int, GDALSetRasterNoDataValue, (GdalHandle band, double value))                                         \
  F(double, GDALGetRasterScale, (GdalHandle band, int* exists))                                             \
  F(double, GDALGetRasterOffset, (GdalHandle band, int* exists))                                            \
  F(int, GDALGetMaskFlags, (GdalHandle band))                                                               \
  F(GdalHandle, GDALGetMaskBand, (GdalHandle band))                                                         \
  F(int, GDALRasterIO,                                                                                      \
    (GdalHandle band, int write, int col, int row, int cols, int rows, void* cells, int buffer_cols,        \
     int buffer_rows, int type, int pixel_space, int line_space))                                           \
  F(GdalHandle, OSRNewSpatialReference, (const char* wkt))                                                  \
  F(void, OSRDestroySpatialReference, (GdalHandle crs))                                                     \
  F(void, OSRSetAxisMappingStrategy, (GdalHandle crs, int strategy))                                        \
  F(int, OSRSetFromUserInput, (GdalHandle crs, const char* text))                                           \
  F(int, OSRImportFromEPSG, (GdalHandle crs, int code))                                                     \
  F(int, OSRExportToWkt, (GdalHandle crs, char** wkt))                                                      \
  F(int, OSRIsGeographic, (GdalHandle crs))                                                                 \
  F(int, OSRIsGeocentric, (GdalHandle crs))                                                                 \
  F(double, OSRGetLinearUnits, (GdalHandle crs, char** name))                                               \
  F(int, OSRIsCompound, (GdalHandle crs))                                                                   \
  F(double, OSRGetTargetLinearUnits, (GdalHandle crs, const char* part, char** name))                       \
  F(int, OSRIsSameEx, (GdalHandle crs, GdalHandle other, const char* const* options))                       \
  F(GdalHandle, GDALDatasetGetLayer, (GdalHandle dataset, int number))                                      \
  F(int, GDALDatasetGetLayerCount, (GdalHandle dataset))                                                    \
  F(const char*, OGR_L_GetName, (GdalHandle layer))                                                         \
  F(GdalHandle, OGR_L_GetSpatialRef, (GdalHandle layer))                                                    \
  F(GdalHandle, OGR_L_GetLayerDefn, (GdalHandle layer))                                                     \
  F(GdalHandle, OGR_L_GetNextFeature, (GdalHandle layer))                                                   \
  F(int, OGR_FD_GetFieldCount, (GdalHandle definition))                                                     \
  F(GdalHandle, OGR_FD_GetFieldDefn, (GdalHandle definition, int number))                                   \
  F(const char*, OGR_Fld_GetNameRef, (GdalHandle field))                                                    \
  F(const char*, OGR_F_GetFieldAsString, (GdalHandle feature, int number))                                  \
  F(GdalHandle, OGR_F_GetGeometryRef, (GdalHandle feature))                                                 \
  F(void, OGR_F_Destroy, (GdalHandle feature))                                                              \
  F(int, OGR_G_ExportToWkt, (GdalHandle geometry, char** wkt))                                              \
  F(GdalHandle, OGR_G_GetLinearGeometry, (GdalHandle geometry, double step, char** options))                \
  F(void, OGR_G_DestroyGeometry, (GdalHandle geometry))                                                     \
  F(GdalHandle, GDALDatasetCreateLayer,                                                                     \
    (GdalHandle dataset, const char* name, GdalHandle crs, int shapes, char** options))                     \
  F(int, GDALDatasetStartTransaction, (GdalHandle dataset, int force))                                      \
  F(int, GDALDatasetCommitTransaction, (GdalHandle dataset))                                                \
  F(void, CPLSetThreadLocalConfigOption, (const char* key, const char* value))                              \
  F(int, OGR_L_CreateField, (GdalHandle layer, GdalHandle field, int approximately))                        \
  F(int, OGR_L_CreateFeature, (GdalHandle layer, GdalHandle feature))                                       \
  F(GdalHandle, OGR_Fld_Create, (const char* name, int type))                                               \
  F(void, OGR_Fld_Destroy, (GdalHandle field))                                                              \
  F(GdalHandle, OGR_F_Create, (GdalHandle definition))                                                      \
  F(void, OGR_F_SetFieldDouble, (GdalHandle feature, int number, double value))                             \
  F(void, OGR_F_SetFieldString, (GdalHandle feature, int number, const char* value))                        \
  F(int, OGR_F_SetGeometryDirectly, (GdalHandle feature, GdalHandle geometry))                              \
  F(int, OGR_G_CreateFromWkt, (char** wkt, GdalHandle crs, GdalHandle* geometry))                           \
  F(GdalHandle, OCTNewCoordinateTransformation, (GdalHandle from, GdalHandle to))                           \
  F(void, OCTDestroyCoordinateTransformation, (GdalHandle transformation))                                  \
  F(int, OCTTransform, (GdalHandle transformation, int count, double* x, double* y, double* z))

struct GdalApi {
  DynamicLibrary library;  // loaded as long as this lives
#define LOCKSTEP_GDAL_POINTER(result, name, parameters) result(*name) parameters = nullptr;
  LOCKSTEP_GDAL_FUNCTIONS(LOCKSTEP_GDAL_POINTER)
#undef LOCKSTEP_GDAL_POINTER
};

/// Loads a library as GDAL. On failure `reason` says why: the folders searched, or what the library lacks.
std::optional<GdalApi> load_gdal(const LibrarySearch& search, std::string& reason);
/// The error where it is absent: reason, folders and package. `where` names the file.
[[noreturn]] void throw_no_gdal(const std::string& reason, const std::string& where);

/// The formats that are opened, null at the end; GDAL's others run SQL, fetch from the network or follow what a text
/// names. Virtual rasters (.vrt) are opened for themselves (vrt.hpp).
extern const char* const kRasterDrivers[];

/// The formats of points and areas that are opened, null at the end. GDAL knows them while a VectorFormats lives, so that no
/// raster's side file is opened as one of them.
extern const char* const kVectorDrivers[];

/// One at a time.
class VectorFormats {
 public:
  explicit VectorFormats(const GdalApi& api);
  ~VectorFormats();
  VectorFormats(const VectorFormats&) = delete;
  VectorFormats& operator=(const VectorFormats&) = delete;

 private:
  const GdalApi& api_;
};

/// The interface, or null where GDAL cannot be loaded. The first call registers GDAL's formats and bounds its
/// cache of blocks, unless GDAL_CACHEMAX is set.
const GdalApi* find_gdal();
/// The same; throws UnsupportedError where it is absent. `where` names the file.
const GdalApi& require_gdal(const std::string& where);

/// Keeps GDAL's messages of this thread off stderr while it lives.
class GdalQuiet {
 public:
  explicit GdalQuiet(const GdalApi& api);
  ~GdalQuiet() { api_.CPLPopErrorHandler(); }
  GdalQuiet(const GdalQuiet&) = delete;
  GdalQuiet& operator=(const GdalQuiet&) = delete;
  /// "what: GDAL's last message", on one line.
  std::string message(const std::string& what) const;

 private:
  const GdalApi& api_;
};

}  // namespace lockstep::io
