package app

import (
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/csrapprover"
)

// addCSRApprover adds the approver of CertificateSigningRequests of the target cluster if it is enabled.
func addCSRApprover(mgr manager.Manager, config *configv1alpha1.ResourceManagerConfiguration, targetCluster cluster.Cluster) error {
	settings := config.Controllers.CSRApprover
	if !settings.Enabled {
		return nil
	}
	var machines *csrapprover.Machines
	if namespace := settings.MachineNamespace; namespace != nil {
		var err error
		machines, err = csrapprover.NewMachines(mgr.GetConfig(), mgr.GetHTTPClient(), *namespace,
			mgr.GetLogger().WithName(csrapprover.ControllerName))
		if err != nil {
			return err
		}
	}
	approver := &csrapprover.Reconciler{
		Target: targetCluster.GetClient(), Direct: targetCluster.GetAPIReader(), Machines: machines,
		Recorder:        newRecorder(targetCluster, csrapprover.ControllerName),
		Metrics:         csrapprover.NewMetrics(metrics.Registry),
		Clock:           clock.RealClock{},
		ConcurrentSyncs: *settings.ConcurrentSyncs,
	}
	return approver.AddToManager(mgr, targetCluster.GetCache())
}
