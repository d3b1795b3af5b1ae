"""Plans for devices that are not here, by the library itself."""
