package worker

import (
	"cmp"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
)

const (
	// LabelDeployment is a label with the deployment of a machine, on the machine and its ManagedResource.
	LabelDeployment = "local.provider.extensions.gardener.cloud/deployment"
	// LabelClass is a label with the class of a machine, on the same objects.
	LabelClass = "local.provider.extensions.gardener.cloud/class"
	// AnnotationImageVersion is the version of the machine image of a machine.
	AnnotationImageVersion = "local.provider.extensions.gardener.cloud/image-version"
	// AnnotationDraining on a Node is the start time of its drain, in the format of RFC 3339.
	AnnotationDraining = "local.provider.extensions.gardener.cloud/draining-since"
	// annotationSimulated marks Nodes for KWOK.
	annotationSimulated = "kwok.x-k8s.io/node"

	// UserDataPath is the directory of the user data on a machine.
	UserDataPath  = "/etc/machine"
	keyUserData   = "userdata"
	containerName = "node"
	stopSeconds   = 10
	// startSlack is the maximum time between the start of a Pod and the first report of its conditions.
	startSlack = 5 * time.Second
)

// labels returns the labels of a machine and its ManagedResource.
func (d Deployment) labels(name string) map[string]string {
	return map[string]string{
		local.LabelApp: local.AppMachine, local.LabelProvider: local.Type, local.LabelMachine: name,
		LabelDeployment: d.Name, LabelClass: d.Class, constants.LabelWorkerPool: d.Pool.Name,
	}
}

// objects returns the objects of a machine: what shows that it exists, and a Pod with its user data, or a simulated Node. token is its
// bootstrap token, nil if its user data needs none.
func (d Deployment) objects(name, technicalID string, machines local.Machines, token *bootstrapToken) []client.Object {
	shown := d.shown(name, technicalID)
	if machines.Simulated {
		return []client.Object{shown, d.node(name)}
	}
	namespace := local.InfrastructureNamespace(technicalID)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: prefixMachine + name + "-userdata", Labels: d.labels(name)},
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{keyUserData: d.userData(name, token)},
	}
	return []client.Object{shown, secret, d.pod(name, secret, machines)}
}

// node returns a Node that KWOK simulates, with the labels, annotations and taints of the pool.
func (d Deployment) node(name string) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: prefixMachine + name, Labels: maps.Clone(d.Labels), Annotations: maps.Clone(d.Annotations)},
		Spec:       corev1.NodeSpec{Taints: d.Taints, ProviderID: local.Type + ":///" + prefixMachine + name},
	}
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	maps.Copy(node.Labels, d.labels(name))
	node.Labels[corev1.LabelHostname], node.Labels[corev1.LabelTopologyZone] = node.Name, d.Zone
	node.Annotations = d.annotations(node.Annotations)
	node.Annotations[annotationSimulated] = "fake"
	return node
}

// annotations adds the annotations of a machine to others.
func (d Deployment) annotations(others map[string]string) map[string]string {
	if others == nil {
		others = map[string]string{}
	}
	others[AnnotationImageVersion] = d.MachineImage.Version
	if d.InPlaceHash != "" {
		others[AnnotationUpdated] = d.InPlaceHash
	}
	return others
}

// pod returns a privileged Pod that boots with systemd. Its directories for containers are volumes, because overlay file
// systems cannot be nested.
func (d Deployment) pod(name string, userData *corev1.Secret, machines local.Machines) *corev1.Pod {
	environment := append([]corev1.EnvVar{
		{Name: "NODE_NAME", Value: prefixMachine + name},
		{Name: "NODE_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
	}, machines.Environment...)
	container := corev1.Container{
		Name: containerName, Image: d.Image, ImagePullPolicy: corev1.PullIfNotPresent, Env: environment,
		SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)},
		ReadinessProbe:  readiness(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: keyUserData, MountPath: UserDataPath, ReadOnly: true},
			{Name: "containerd", MountPath: "/var/lib/containerd"}, {Name: "kubelet", MountPath: "/var/lib/kubelet"},
		},
	}
	if d.Config != nil && d.Config.Resources != nil {
		container.Resources = *d.Config.Resources
	}
	empty := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: userData.Namespace, Name: prefixMachine + name, Labels: d.labels(name), Annotations: d.annotations(nil),
		},
		Spec: corev1.PodSpec{
			Hostname: prefixMachine + name, EnableServiceLinks: ptr.To(false), AutomountServiceAccountToken: ptr.To(false),
			TerminationGracePeriodSeconds: ptr.To[int64](stopSeconds), DNSPolicy: corev1.DNSClusterFirst,
			Containers: []corev1.Container{container},
			Volumes: []corev1.Volume{
				{Name: keyUserData, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
					SecretName: userData.Name, DefaultMode: ptr.To[int32](0o755),
				}}},
				{Name: "containerd", VolumeSource: empty}, {Name: "kubelet", VolumeSource: empty},
			},
		},
	}
}

// readiness returns the probe of a machine, which succeeds once systemd has booted and the user data has run. If the user data has installed
// a node agent, kubelet must also run and have its certificate, so that the machine is a node.
func readiness() *corev1.Probe {
	const booted = "systemctl is-active --quiet multi-user.target && systemctl is-active --quiet run-userdata.service"
	const joined = "systemctl is-active --quiet kubelet.service && test -e /var/lib/kubelet/pki/kubelet-client-current.pem"
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{
			"/bin/sh", "-c", booted + " && if test -e /var/lib/gardener-node-agent; then " + joined + "; fi",
		}}},
		PeriodSeconds: 5, TimeoutSeconds: 5,
	}
}

// machineOfPod returns the state of a machine from its Pod.
func machineOfPod(pod *corev1.Pod) Machine {
	machine := fromMeta(pod)
	machine.Address = pod.Status.PodIP
	machine.Failed = pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			machine.Ready = condition.Status == corev1.ConditionTrue
			machine.Changed = condition.LastTransitionTime.Time
		}
	}
	// kubelet writes the condition when the Pod starts. A later transition means that the machine was ready.
	machine.WasReady = machine.Ready || pod.Status.StartTime != nil && machine.Changed.After(pod.Status.StartTime.Add(startSlack))
	return machine
}

// machineOfNode returns the state of a machine from its simulated Node.
func machineOfNode(node *corev1.Node) Machine {
	machine := fromMeta(node)
	machine.HasNode = true
	if since, err := time.Parse(time.RFC3339, node.Annotations[AnnotationDraining]); err == nil {
		machine.Draining = since
	}
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			machine.Address = cmp.Or(machine.Address, address.Address)
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			machine.Ready = condition.Status == corev1.ConditionTrue
			machine.Changed = condition.LastTransitionTime.Time
			machine.WasReady = true
		}
	}
	return machine
}

// fromMeta returns the state of a machine from the metadata of its Pod, Node or ManagedResource.
func fromMeta(object client.Object) Machine {
	labels := object.GetLabels()
	return Machine{
		Name: labels[local.LabelMachine], Deployment: labels[LabelDeployment], Class: labels[LabelClass],
		Pool: labels[constants.LabelWorkerPool], ImageVersion: object.GetAnnotations()[AnnotationImageVersion],
		Created: object.GetCreationTimestamp().Time, Deleting: object.GetDeletionTimestamp() != nil,
		Update: Update{Hash: object.GetAnnotations()[AnnotationUpdated]},
	}
}
