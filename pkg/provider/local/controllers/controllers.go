// Package controllers adds all controllers of provider-local to a manager.
package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/extension/bundles"
	"github.com/trellis-k8s/trellis/pkg/extension/health"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
	"github.com/trellis-k8s/trellis/pkg/provider/local/backupbucket"
	"github.com/trellis-k8s/trellis/pkg/provider/local/backupentry"
	"github.com/trellis-k8s/trellis/pkg/provider/local/bastion"
	"github.com/trellis-k8s/trellis/pkg/provider/local/containerruntime"
	"github.com/trellis-k8s/trellis/pkg/provider/local/controlplane"
	"github.com/trellis-k8s/trellis/pkg/provider/local/dnsrecord"
	"github.com/trellis-k8s/trellis/pkg/provider/local/example"
	"github.com/trellis-k8s/trellis/pkg/provider/local/infrastructure"
	"github.com/trellis-k8s/trellis/pkg/provider/local/network"
	"github.com/trellis-k8s/trellis/pkg/provider/local/operatingsystemconfig"
	"github.com/trellis-k8s/trellis/pkg/provider/local/store"
	"github.com/trellis-k8s/trellis/pkg/provider/local/worker"
)

// Names of images in the image vector.
const (
	imageSelf       = local.Name
	imageNodeAgents = "node-agents"
)

// Options are the options of the controllers.
type Options struct {
	Settings local.Settings
	// Common are the options of every controller. Its Type is ignored.
	Common extension.Options
	// Disabled are the names of controllers that are not added. The names are the kinds in lower case.
	Disabled []string
	Version  string
	Clock    clock.PassiveClock
	Images   images.Vector
}

// Names returns the names of all controllers.
func Names() []string {
	return []string{
		"backupbucket", "backupentry", "bastion", "containerruntime", "controlplane", "dnsrecord", "extension", "infrastructure", "network",
		"operatingsystemconfig", "worker",
	}
}

// adder adds controllers to a manager.
type adder struct {
	Options

	mgr      manager.Manager
	deployer *bundles.Deployer
	self     string
	agents   string
}

// AddToManager adds the controllers. The manager's client must read Secrets, Services and ConfigMaps without a cache.
func AddToManager(ctx context.Context, mgr manager.Manager, options Options) error {
	for _, name := range options.Disabled {
		if !slices.Contains(Names(), name) {
			return fmt.Errorf("the controller %q does not exist: use one of %v", name, Names())
		}
	}
	self, err := options.Images.Find(imageSelf, images.Options{})
	if err != nil {
		return err
	}
	agents, err := options.Images.Find(imageNodeAgents, images.Options{})
	if err != nil {
		return err
	}
	deployer, err := bundles.NewDeployer(ctx, mgr, bundles.Options{
		Name: local.Name, Version: options.Version, Clock: options.Clock, Namespace: options.Settings.Machines.Namespace,
	})
	if err != nil {
		return err
	}
	a := &adder{Options: options, mgr: mgr, deployer: deployer, self: self.Reference, agents: agents.Reference}
	return errors.Join(a.addCluster(), a.addNodes(), a.addBackups(), a.addWorker(), a.addSecrets())
}

// common returns the options of the controller of a type.
func (a *adder) common(ofType string, sources []source.Source) extension.Options {
	options := a.Common
	options.Type, options.Sources, options.Clock = ofType, sources, a.Clock
	return options
}

// emitting is an actuator with sources that trigger its objects when their bundles change.
type emitting[T extensionsv1alpha1.Object] interface {
	extension.Actuator[T]
	Sources() []source.Source
}

// add adds the controller of a kind, unless it is disabled.
func add[T extensionsv1alpha1.Object](a *adder, name, ofType string, actuator emitting[T]) error {
	if slices.Contains(a.Disabled, name) {
		return nil
	}
	if err := extension.AddToManager(a.mgr, actuator, a.common(ofType, actuator.Sources())); err != nil {
		return fmt.Errorf("add the controller %s: %w", name, err)
	}
	return nil
}

// addCluster adds the controllers of the kinds that a Shoot has once.
func (a *adder) addCluster() error {
	reader := a.mgr.GetAPIReader()
	errs := []error{
		add(a, "infrastructure", local.Type, infrastructure.New(a.deployer, a.mgr.GetClient(), reader, a.Settings.Machines)),
		add(a, "controlplane", local.Type, controlplane.New(a.deployer, a.agents)),
		add(a, "network", local.Type, network.New(a.deployer, a.agents)),
		add(a, "bastion", local.Type, bastion.New(a.deployer, reader, a.self, a.Settings.Machines)),
	}
	for _, one := range example.Types() {
		errs = append(errs, add(a, "extension", one, example.New(a.deployer, one)))
	}
	if !slices.Contains(a.Disabled, "dnsrecord") {
		records := &dnsrecord.Actuator{
			Client: a.mgr.GetClient(), Uncached: reader, ConfigMap: a.Settings.DNSConfigMap, Zones: a.Settings.DNSZones,
		}
		errs = append(errs, extension.AddToManager(a.mgr, records, a.common(local.Type, nil)))
	}
	return errors.Join(errs...)
}

// addNodes adds the controllers of the kinds for nodes.
func (a *adder) addNodes() error {
	return errors.Join(
		add(a, "operatingsystemconfig", local.Type, operatingsystemconfig.New(a.deployer, a.mgr.GetAPIReader())),
		add(a, "containerruntime", local.Type, containerruntime.New(a.deployer)),
	)
}

// addBackups adds the controllers of the kinds for backups.
func (a *adder) addBackups() error {
	stores := store.Stores{Uncached: a.mgr.GetAPIReader(), Directory: store.Directory(a.Settings.BackupDirectory)}
	return errors.Join(
		add(a, "backupbucket", local.Type, backupbucket.New(a.deployer, stores)),
		add(a, "backupentry", local.Type, backupentry.New(a.deployer, stores, a.Settings.BackupHostPath)),
	)
}

// addSecrets adds the controller of the Secrets that objects of the enabled kinds refer to.
func (a *adder) addSecrets() error {
	var kinds []extensionsv1alpha1.Object
	for name, object := range map[string]extensionsv1alpha1.Object{
		"infrastructure": &extensionsv1alpha1.Infrastructure{}, "controlplane": &extensionsv1alpha1.ControlPlane{},
		"dnsrecord": &extensionsv1alpha1.DNSRecord{}, "worker": &extensionsv1alpha1.Worker{},
		"backupbucket": &extensionsv1alpha1.BackupBucket{}, "backupentry": &extensionsv1alpha1.BackupEntry{},
	} {
		if !slices.Contains(a.Disabled, name) {
			kinds = append(kinds, object)
		}
	}
	return extension.AddSecretsToManager(a.mgr, kinds...)
}

// addWorker adds the controllers of Workers and their health.
func (a *adder) addWorker() error {
	if slices.Contains(a.Disabled, "worker") {
		return nil
	}
	kube, err := kubernetes.NewForConfigAndClient(a.mgr.GetConfig(), a.mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("create a client to drain machines: %w", err)
	}
	actuator := &worker.Actuator{
		Client: a.mgr.GetClient(), Uncached: a.mgr.GetAPIReader(), Kube: kube,
		Deployer: a.deployer, Machines: a.Settings.Machines, Clock: a.Clock,
	}
	sources := actuator.Sources(a.mgr.GetCache())
	if err := extension.AddToManager(a.mgr, actuator, a.common(local.Type, sources)); err != nil {
		return fmt.Errorf("add the controller worker: %w", err)
	}
	return health.AddToManager(a.mgr, health.Options[*extensionsv1alpha1.Worker]{
		Type: local.Type, Classes: a.Common.Classes, Clock: a.Clock, Sources: actuator.MachineSources(a.mgr.GetCache()),
		Checks: []health.Check[*extensionsv1alpha1.Worker]{{Condition: health.EveryNodeReady, Look: actuator.EveryMachineReady}},
	})
}
