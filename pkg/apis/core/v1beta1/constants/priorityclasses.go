package constants

// Names of PriorityClasses. In a Seed, classes 500 and below are for the control planes of Shoots.
const (
	// PriorityClassGardenSystemCritical has the value 999999550.
	PriorityClassGardenSystemCritical = "gardener-garden-system-critical"
	// PriorityClassGardenSystem500 has the value 999999500.
	PriorityClassGardenSystem500 = "gardener-garden-system-500"
	// PriorityClassGardenSystem400 has the value 999999400.
	PriorityClassGardenSystem400 = "gardener-garden-system-400"
	// PriorityClassGardenSystem300 has the value 999999300.
	PriorityClassGardenSystem300 = "gardener-garden-system-300"
	// PriorityClassGardenSystem200 has the value 999999200.
	PriorityClassGardenSystem200 = "gardener-garden-system-200"
	// PriorityClassGardenSystem100 has the value 999999100.
	PriorityClassGardenSystem100 = "gardener-garden-system-100"
	// PriorityClassSystemCritical has the value 999998950.
	PriorityClassSystemCritical = "gardener-system-critical"
	// PriorityClassSystem900 has the value 999998900.
	PriorityClassSystem900 = "gardener-system-900"
	// PriorityClassSystem800 has the value 999998800.
	PriorityClassSystem800 = "gardener-system-800"
	// PriorityClassSystem700 has the value 999998700.
	PriorityClassSystem700 = "gardener-system-700"
	// PriorityClassSystem600 has the value 999998600.
	PriorityClassSystem600 = "gardener-system-600"
	// PriorityClassSystem500 has the value 999998500.
	PriorityClassSystem500 = "gardener-system-500"
	// PriorityClassSystem400 has the value 999998400.
	PriorityClassSystem400 = "gardener-system-400"
	// PriorityClassSystem300 has the value 999998300.
	PriorityClassSystem300 = "gardener-system-300"
	// PriorityClassSystem200 has the value 999998200.
	PriorityClassSystem200 = "gardener-system-200"
	// PriorityClassSystem100 has the value 999998100.
	PriorityClassSystem100 = "gardener-system-100"
	// PriorityClassReserveExcessCapacity has the value -5.
	PriorityClassReserveExcessCapacity = "gardener-reserve-excess-capacity"
	// PriorityClassShootSystem900 has the value 999999900.
	PriorityClassShootSystem900 = "gardener-shoot-system-900"
	// PriorityClassShootSystem800 has the value 999999800.
	PriorityClassShootSystem800 = "gardener-shoot-system-800"
	// PriorityClassShootSystem700 has the value 999999700.
	PriorityClassShootSystem700 = "gardener-shoot-system-700"
	// PriorityClassShootSystem600 has the value 999999600.
	PriorityClassShootSystem600 = "gardener-shoot-system-600"
)
