package constants

// Labels for monitoring.
const (
	// LabelPrefixDashboard is the prefix of labels with the names of dashboards.
	LabelPrefixDashboard = "dashboard.monitoring.gardener.cloud/"
	// LabelPrefixDatasource is the prefix of labels with the names of data sources.
	LabelPrefixDatasource = "datasource.monitoring.gardener.cloud/"
	// LabelObservabilityApp is the application that an observability object belongs to.
	LabelObservabilityApp = "observability.gardener.cloud/app"
	// LabelFluentBitType is the kind of log collector that a configuration is for: seed.
	LabelFluentBitType = "fluentbit.gardener/type"
)
