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

// Timeouts of machines, unless the pool sets others.
const (
	defaultCreationTimeout = 20 * time.Minute
	defaultHealthTimeout   = 10 * time.Minute
	defaultDrainTimeout    = 2 * time.Hour
)

// classLength is the number of characters of a class in the names of machines.
const classLength = 5

// Pool is a worker pool with what is looked up for it.
type Pool struct {
	extensionsv1alpha1.WorkerPool
	// Config is the decoded provider configuration; nil for none.
	Config *providerlocalv1alpha1.WorkerConfig
	// Image is the container image of the machine image.
	Image string
	// UserData is what new machines run when they boot.
	UserData []byte
}

// Deployment is the set of machines of a pool in a zone.
type Deployment struct {
	Pool
	// Name is unique in the seed.
	Name string
	Zone string
	// Least and Most are the shares of the zone in the minimum and the maximum of the pool.
	Least, Most int
	// Class is a digest of what makes machines of the deployment differ from older ones.
	Class string
	// Restored are the names of its machines in the seed that it comes from.
	Restored []string
}

// deployments returns the deployments of the pools of a Worker. Their order is that of pools and zones.
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

// share returns the part of a number for zone i of n: the first zones get what cannot be divided.
func share(total, i, n int) int {
	if i < total%n {
		return total/n + 1
	}
	return total / n
}

// classOf returns a digest of what a change of replaces machines: gardenlet's Secret for nodes has another name whenever nodes have to be replaced.
// The user data counts only without that name, since it changes with credentials, too.
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

// replicas returns the number of machines that a deployment should have: the minimum, since no autoscaler scales these machines.
func (d Deployment) replicas(hibernated bool) int {
	if hibernated {
		return 0
	}
	return d.Least
}

// fenceposts returns how many machines may be there beyond the replicas while machines are replaced, and how many may be missing.
func (d Deployment) fenceposts(replicas int) (surge, unavailable int, err error) {
	if surge, err = intstr.GetScaledValueFromIntOrPercent(&d.MaxSurge, replicas, true); err != nil {
		return 0, 0, fmt.Errorf("maxSurge of pool %s: %w", d.Pool.Name, err)
	}
	if unavailable, err = intstr.GetScaledValueFromIntOrPercent(&d.MaxUnavailable, replicas, false); err != nil {
		return 0, 0, fmt.Errorf("maxUnavailable of pool %s: %w", d.Pool.Name, err)
	}
	if surge <= 0 && unavailable <= 0 {
		unavailable = 1 // otherwise nothing could be replaced
	}
	return surge, unavailable, nil
}

// timeouts returns how long a machine may take to become ready, to recover (zero for as long as it needs), and to be drained.
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

func orDefault(set *metav1.Duration, otherwise time.Duration) time.Duration {
	if set == nil {
		return otherwise
	}
	return cmp.Or(set.Duration, otherwise)
}

// restore takes the names of its machines, of the same class, from the state of the Worker.
func (d *Deployment) restore(machines []providerlocalv1alpha1.MachineState) {
	for _, m := range machines {
		if m.Deployment == d.Name && m.Class == d.Class {
			d.Restored = append(d.Restored, m.Name)
		}
	}
}

// status returns what is reported for a deployment.
func (d Deployment) status() extensionsv1alpha1.MachineDeployment {
	return extensionsv1alpha1.MachineDeployment{
		Name: d.Name, Minimum: int32(d.Least), Maximum: int32(d.Most), Priority: d.Priority, //nolint:gosec // shares of numbers with 32 bits
	}
}
