// Package etcdoperator contains the operator of etcd clusters in a seed. Its names are those of etcd-druid, so that
// each of the two can replace the other.
package etcdoperator

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/netpol"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// ComponentName is the name of the operator in the files with images of components.
const ComponentName = "etcd-druid"

// The names of the images of the operator and of the members that it creates.
const (
	Image       = "etcd-operator"
	ImageMember = "etcd-member"
)

const (
	name        = ComponentName
	clusterRole = "gardener.cloud:system:etcd-druid"
	// electionName is the name of the Lease of leader election.
	electionName = "etcd-operator"

	configFile = "config.yaml"
	configPath = "/etc/etcd-operator"

	portMetrics = 8080
	portHealth  = 8081

	// resourceClass is the class of the seed's resource-manager, which applies the objects that the operator emits.
	resourceClass = "seed"
	// defaultWorkers is the default number of Etcds that are reconciled concurrently.
	defaultWorkers = 50
)

// Values are the inputs of the component.
type Values struct {
	// Namespace of the operator: garden.
	Namespace string
	// Etcds are the names of the Etcds in this namespace: those of a virtual garden. In a seed there are none.
	Etcds []string
	// Image and MemberImage are the references of the images named by the constants Image and ImageMember.
	Image, MemberImage string
	// PriorityClass of the operator; empty for the one of a seed.
	PriorityClass string
	// Workers is the number of Etcds that are reconciled concurrently; 0 for 50.
	Workers int64
	// LogLevel and LogFormat; empty for the operator's defaults.
	LogLevel, LogFormat string
	// VerticalPodAutoscaler adds a VerticalPodAutoscaler. The cluster must define the kind.
	VerticalPodAutoscaler bool
}

// SetImages sets the images of the operator and of the members.
func (v *Values) SetImages(image func(name string) (string, error)) (err error) {
	if v.Image, err = image(Image); err != nil {
		return err
	}
	v.MemberImage, err = image(ImageMember)
	return err
}

// selector selects the Pods. It is the same as for etcd-druid.
var selector = map[string]string{constants.LabelGardenRole: name}

// Objects returns the objects of the component.
func Objects(values Values) ([]client.Object, error) {
	if values.MemberImage == "" {
		return nil, errors.New("the image of the members of etcd clusters must be known")
	}
	text, err := configuration(values)
	if err != nil {
		return nil, err
	}
	labels := maps.Clone(selector)
	configMap, err := parts.Configuration(values.Namespace, name+"-config", labels, configFile, text)
	if err != nil {
		return nil, err
	}
	deployment, err := deployment(values, labels, configMap.Name)
	if err != nil {
		return nil, err
	}
	objects := []client.Object{
		parts.ServiceAccount(values.Namespace, name, labels), configMap, service(values.Namespace, labels), deployment, parts.Budget(deployment),
	}
	account := parts.Account{Namespace: values.Namespace, Name: name}
	objects = append(objects, parts.ClusterRights(clusterRole, labels, rules(), account)...)
	objects = append(objects, boundary(account, values.Etcds)...)
	if values.VerticalPodAutoscaler {
		objects = append(objects, parts.Autoscaler(deployment, "100M"))
	}
	return objects, nil
}

// configuration returns the operator's configuration file.
func configuration(values Values) (string, error) {
	config := map[string]any{
		"apiVersion": "etcdoperator.config.gardener.cloud/v1alpha1", "kind": "EtcdOperatorConfiguration",
		"leaderElection": map[string]any{"leaderElect": true, "resourceName": electionName, "resourceNamespace": values.Namespace},
		"server": map[string]any{
			"healthProbes": map[string]any{"port": portHealth}, "metrics": map[string]any{"port": portMetrics},
		},
		"memberImage": values.MemberImage,
		"controllers": map[string]any{"etcd": map[string]any{
			"concurrentSyncs": cmp.Or(values.Workers, defaultWorkers), "resourceClass": resourceClass,
		}},
	}
	for field, value := range map[string]string{"logLevel": values.LogLevel, "logFormat": values.LogFormat} {
		if value != "" {
			config[field] = value
		}
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		return "", fmt.Errorf("encode the configuration of the operator of etcd clusters: %w", err)
	}
	return string(text), nil
}

// rules are the permissions of the operator. It emits ManagedResources, which the resource-manager applies, and writes
// the status of Etcds. [boundary] restricts the namespaces.
func rules() []rbacv1.PolicyRule {
	read := []string{"get", "list", "watch"}
	write := slices.Concat(read, []string{"create", "patch", "delete"})
	update := slices.Concat(write, []string{"update"})
	return []rbacv1.PolicyRule{
		parts.Rule("druid.gardener.cloud", []string{"etcds", "etcdcopybackupstasks"}, slices.Concat(read, []string{"patch"})...),
		parts.Rule("druid.gardener.cloud", []string{"etcds/status", "etcdcopybackupstasks/status"}, "patch"),
		parts.Rule("druid.gardener.cloud", []string{"etcds/finalizers", "etcdcopybackupstasks/finalizers"}, "update"),
		parts.Rule("batch", []string{"jobs"}, read...),
		parts.Rule("resources.gardener.cloud", []string{"managedresources"}, write...),
		parts.Rule("", []string{"secrets"}, update...),
		parts.Rule("coordination.k8s.io", []string{"leases"}, update...),
		parts.Rule("apps", []string{"statefulsets"}, read...),
		parts.Rule("apiextensions.k8s.io", []string{"customresourcedefinitions"}, read...),
		parts.Rule("events.k8s.io", []string{"events"}, "create", "patch"),
	}
}

func service(namespace string, labels map[string]string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: labels,
			Annotations: map[string]string{
				netpol.AliasAnnotation(constants.NetworkPolicyAllSeedScrapeTargets): parts.PortsAllowed(portMetrics),
			},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: selector,
			Ports: []corev1.ServicePort{{
				Name: "metrics", Port: portMetrics, TargetPort: intstr.FromInt32(portMetrics), Protocol: corev1.ProtocolTCP,
			}},
		},
	}
}

func deployment(values Values, labels map[string]string, configMap string) (*appsv1.Deployment, error) {
	const config, health = "config", "health"
	container := corev1.Container{
		Name: name, Image: values.Image, Args: []string{"--config=" + configPath + "/" + configFile},
		Ports: []corev1.ContainerPort{
			{Name: "metrics", ContainerPort: portMetrics, Protocol: corev1.ProtocolTCP},
			{Name: health, ContainerPort: portHealth, Protocol: corev1.ProtocolTCP},
		},
		LivenessProbe: parts.Probe("/healthz", health), ReadinessProbe: parts.Probe("/readyz", health),
		Resources:    corev1.ResourceRequirements{Requests: parts.Requests("50m", "128Mi")},
		VolumeMounts: []corev1.VolumeMount{parts.Mount(config, configPath)},
	}
	return parts.Workload{
		Namespace: values.Namespace, Name: name, Selector: selector,
		Labels: parts.Merge(labels, map[string]string{highavailability.LabelType: "controller"}),
		PodLabels: parts.Merge(labels, map[string]string{
			constants.LabelNetworkPolicyToDNS:              constants.NetworkPolicyAllowed,
			constants.LabelNetworkPolicyToRuntimeAPIServer: constants.NetworkPolicyAllowed,
		}),
		Replicas: 1, PriorityClass: cmp.Or(values.PriorityClass, constants.PriorityClassSystem800), ServiceAccount: name,
		Container: container, Volumes: []corev1.Volume{parts.ConfigVolume(config, configMap)},
	}.Deployment()
}
