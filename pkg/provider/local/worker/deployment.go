package worker

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	providerlocalv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/providerlocal/v1alpha1"
)

// Default timeouts of machines.
const (
	defaultCreationTimeout = 20 * time.Minute
	defaultHealthTimeout   = 10 * time.Minute
	defaultDrainTimeout    = 2 * time.Hour
)

// classLength is the number of characters of a class in the names of machines.
const classLength = 5

// Pool is a worker pool with its resolved references.
type Pool struct {
	extensionsv1alpha1.WorkerPool
	// Config is the decoded provider configuration, or nil.
	Config *providerlocalv1alpha1.WorkerConfig
	// Image is the container image of the machine image.
	Image string
	// UserData is the script that new machines execute on their first boot.
	UserData []byte
	// InPlaceHash identifies what is updated in place on the machines; empty if they are replaced instead.
	InPlaceHash string
}

// Deployment is a set of equal machines of a pool in one zone.
type Deployment struct {
	Pool
	// Name is unique in the seed.
	Name string
	Zone string
	// Least and Most are the zone's shares of the minimum and maximum of the pool.
	Least, Most int
	// Class is a digest of the properties whose change replaces machines.
	Class string
	// Restored are the names of its machines before a migration.
	Restored []string
}

// deployments returns the deployments of the pools of a Worker, ordered by pool and zone.
func deployments(technicalID, region string, pools []Pool) ([]Deployment, error) {
	var all []Deployment
	for _, pool := range pools {
		class, err := classOf(pool)
		if err != nil {
			return nil, err
		}
		zones := pool.Zones
		if len(zones) == 0 {
			zones = []string{region}
		}
		for i, zone := range zones {
			all = append(all, Deployment{
				Pool: pool, Zone: zone, Class: class, Name: fmt.Sprintf("%s-%s-z%d", technicalID, pool.Name, i+1),
				Least: share(int(pool.Minimum), i, len(zones)), Most: share(int(pool.Maximum), i, len(zones)),
			})
		}
	}
	return all, nil
}

// share returns the share of zone i of n. The first zones get the remainder.
func share(total, i, n int) int {
	if i < total%n {
		return total/n + 1
	}
	return total / n
}

// classOf returns a digest of the properties whose change replaces machines. gardenlet gives its Secret for nodes a new
// name when nodes must be replaced. The user data only counts if there is no such name, because it also changes with
// credentials.
func classOf(pool Pool) (string, error) {
	data := struct {
		MachineType, Image, NodeAgentSecret string
		UserData                            []byte
		MachineImage                        extensionsv1alpha1.MachineImage
		Volume                              *extensionsv1alpha1.Volume
		Resources                           *corev1.ResourceRequirements
	}{
		MachineType: pool.MachineType, Image: pool.Image, MachineImage: pool.MachineImage, Volume: pool.Volume,
	}
	if pool.InPlaceHash != "" {
		data.Image, data.MachineImage.Version = "", ""
	}
	if pool.NodeAgentSecretName != nil {
		data.NodeAgentSecret = *pool.NodeAgentSecretName
	} else {
		data.UserData = pool.UserData
	}
	if pool.Config != nil {
		data.Resources = pool.Config.Resources
	}
	text, err := json.Marshal(data)
	if err != nil {
		return "", fmt.Errorf("encode pool %s: %w", pool.Name, err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:classLength], nil
}

// replicas returns the wanted number of machines: the minimum, because no autoscaler scales these machines.
func (d Deployment) replicas(hibernated bool) int {
	if hibernated {
		return 0
	}
	return d.Least
}

// fenceposts returns the absolute values of maxSurge and maxUnavailable.
func (d Deployment) fenceposts(replicas int) (surge, unavailable int, err error) {
	if surge, err = intstr.GetScaledValueFromIntOrPercent(&d.MaxSurge, replicas, true); err != nil {
		return 0, 0, fmt.Errorf("maxSurge of pool %s: %w", d.Pool.Name, err)
	}
	if unavailable, err = intstr.GetScaledValueFromIntOrPercent(&d.MaxUnavailable, replicas, false); err != nil {
		return 0, 0, fmt.Errorf("maxUnavailable of pool %s: %w", d.Pool.Name, err)
	}
	if surge <= 0 && unavailable <= 0 {
		unavailable = 1 // otherwise no machine could be replaced
	}
	return surge, unavailable, nil
}

// timeouts returns how long a machine may take to become ready, to recover (zero for no limit), and to be drained.
func (d Deployment) timeouts() (creation, health, drain time.Duration) {
	creation, health, drain = defaultCreationTimeout, defaultHealthTimeout, defaultDrainTimeout
	if settings := d.MachineControllerManagerSettings; settings != nil {
		creation = orDefault(settings.MachineCreationTimeout, creation)
		health = orDefault(settings.MachineHealthTimeout, health)
		drain = orDefault(settings.MachineDrainTimeout, drain)
		if ptr.Deref(settings.DisableHealthTimeout, false) {
			health = 0
		}
	}
	return creation, health, drain
}

// orDefault returns a duration, or the default if it is not set.
func orDefault(set *metav1.Duration, otherwise time.Duration) time.Duration {
	if set == nil {
		return otherwise
	}
	return cmp.Or(set.Duration, otherwise)
}

// restore sets the names of machines of the same class in the state of the Worker.
func (d *Deployment) restore(machines []providerlocalv1alpha1.MachineState) {
	for _, m := range machines {
		if m.Deployment == d.Name && m.Class == d.Class {
			d.Restored = append(d.Restored, m.Name)
		}
	}
}

// status returns the status of a deployment.
func (d Deployment) status() extensionsv1alpha1.MachineDeployment {
	return extensionsv1alpha1.MachineDeployment{
		Name: d.Name, Minimum: int32(d.Least), Maximum: int32(d.Most), Priority: d.Priority, //nolint:gosec // shares of numbers with 32 bits
	}
}
