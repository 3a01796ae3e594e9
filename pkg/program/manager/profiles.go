package manager

import (
	"errors"
	"net/http"
	"net/http/pprof"
	goruntime "runtime"

	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// AddProfiles serves Go's profiles below /debug/pprof/ on the metrics port if the configuration enables it. Profiles are off by default,
// because the port needs no credentials. Contention is only profiled in addition.
func AddProfiles(mgr manager.Manager, config *componentbaseconfigv1alpha1.DebuggingConfiguration) error {
	if config == nil || !ptr.Deref(config.EnableProfiling, false) {
		return nil
	}
	if ptr.Deref(config.EnableContentionProfiling, false) {
		goruntime.SetBlockProfileRate(1)
	}
	return errors.Join(
		mgr.AddMetricsServerExtraHandler("/debug/pprof/", http.HandlerFunc(pprof.Index)),
		mgr.AddMetricsServerExtraHandler("/debug/pprof/cmdline", http.HandlerFunc(pprof.Cmdline)),
		mgr.AddMetricsServerExtraHandler("/debug/pprof/profile", http.HandlerFunc(pprof.Profile)),
		mgr.AddMetricsServerExtraHandler("/debug/pprof/symbol", http.HandlerFunc(pprof.Symbol)),
		mgr.AddMetricsServerExtraHandler("/debug/pprof/trace", http.HandlerFunc(pprof.Trace)),
	)
}
