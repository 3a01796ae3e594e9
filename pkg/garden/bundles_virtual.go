package garden

import (
	"cmp"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/etcd"
	"github.com/trellis-k8s/trellis/pkg/component/gardenerprograms"
	"github.com/trellis-k8s/trellis/pkg/component/gardensystem"
	"github.com/trellis-k8s/trellis/pkg/issuer"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

func (in Inputs) virtualSystem() ([]client.Object, error) {
	return append(gardensystem.VirtualNamespaces(), gardensystem.VirtualRights()...), nil
}

// workloadIdentityIssuerName is the ConfigMap with the documents of the issuer of tokens of WorkloadIdentities.
const (
	workloadIdentityIssuerName = "workload-identity-issuer"
	keyConfiguration           = "openid-configuration.json"
	keyKeys                    = "jwks.json"
)

// info returns what every user may know about the garden.
func (in Inputs) info() ([]client.Object, error) {
	text, err := json.Marshal(map[string]string{"version": in.Version, "workloadIdentityIssuerURL": in.workloadIdentityIssuer()})
	if err != nil {
		return nil, fmt.Errorf("encode the information about the garden: %w", err)
	}
	documents, err := in.workloadIdentityDocuments()
	if err != nil {
		return nil, err
	}
	return []client.Object{
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: constants.SystemPublicNamespace, Name: constants.GardenerInfoName},
			Data:       map[string]string{"gardenerAPIServer": string(text)},
		},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: constants.SystemPublicNamespace, Name: workloadIdentityIssuerName},
			Data:       map[string]string{keyConfiguration: documents.Configuration, keyKeys: documents.Keys},
		},
	}, nil
}

// workloadIdentityDocuments returns the documents of the issuer. During a rotation, they have the new key before tokens are signed with it, and the old
// one until no token of it should be accepted.
func (in Inputs) workloadIdentityDocuments() (issuer.Documents, error) {
	item := in.Secrets[constants.SecretNameWorkloadIdentitySigningKey]
	keys := [][]byte{item.Current.Data[secrets.KeyRSA]}
	if item.Old != nil {
		keys = append(keys, item.Old.Data[secrets.KeyRSA])
	}
	documents, err := issuer.NewDocuments(in.workloadIdentityIssuer(), keys...)
	if err != nil {
		return documents, fmt.Errorf("the Secret %s/%s: %w", in.Namespace, item.Current.Name, err)
	}
	return documents, nil
}

// workloadIdentityIssuer returns the issuer of tokens of WorkloadIdentities: a path of the discovery server.
func (in Inputs) workloadIdentityIssuer() string {
	return "https://" + cmp.Or(in.discoveryHost(), in.outsideHost()) + "/garden/workload-identity/issuer"
}

// runtimeProgram returns the function for the objects of a program in the runtime cluster.
func (in Inputs) runtimeProgram(program gardenerprograms.Program) func() ([]client.Object, error) {
	return func() ([]client.Object, error) {
		values, err := in.program(program)
		if err != nil {
			return nil, err
		}
		objects, err := gardenerprograms.RuntimeObjects(values)
		if err != nil || program != gardenerprograms.APIServer {
			return objects, err
		}
		encryption, err := in.gardenerEncryptionSecret()
		if err != nil {
			return nil, err
		}
		files, err := in.gardenerAuditFiles()
		return append(append(objects, encryption), files...), err
	}
}

// virtualProgram returns the function for the objects of a program in the virtual garden.
func (in Inputs) virtualProgram(program gardenerprograms.Program) func() ([]client.Object, error) {
	return func() ([]client.Object, error) {
		values, err := in.program(program)
		if err != nil {
			return nil, err
		}
		return gardenerprograms.VirtualObjects(values)
	}
}

// registration returns what makes the virtual garden call the API server of the garden.
func (in Inputs) registration() ([]client.Object, error) {
	values, err := in.program(gardenerprograms.APIServer)
	if err != nil {
		return nil, err
	}
	return gardenerprograms.Registration(values)
}

// program returns the values of a program.
func (in Inputs) program(program gardenerprograms.Program) (gardenerprograms.Values, error) {
	image, err := in.image(string(program))
	if err != nil {
		return gardenerprograms.Values{}, err
	}
	values := gardenerprograms.Values{
		Program: program, Image: image, Kubeconfig: in.secret(constants.SecretNameGenericTokenKubeconfig), APIServerAddress: in.APIServerAddress,
	}
	switch program {
	case gardenerprograms.APIServer:
		err = in.completeAPIServer(&values)
	case gardenerprograms.AdmissionController:
		values.Chart = map[string]any{
			"replicaCount": int64(in.replicas(2)), "config": in.admissionControllerConfig(),
			"webhooks": map[string]any{
				"url":      "https://" + program.Name() + "." + in.Namespace,
				"caBundle": string(in.bundle(constants.SecretNameCAGardener)),
			},
		}
		values.Volumes = map[string]corev1.VolumeSource{"tls": gardenerprograms.SecretSource(map[string]string{
			"tls.crt": in.secret(program.Name()) + "/tls.crt", "tls.key": in.secret(program.Name()) + "/tls.key",
		})}
		values.Mounts = map[string]string{"tls": pathAdmissionCertificate}
	case gardenerprograms.ControllerManager:
		var config map[string]any
		config, err = in.controllerManagerConfig()
		values.Chart = map[string]any{"replicaCount": int64(in.replicas(2)), "config": config}
	case gardenerprograms.Scheduler:
		values.Chart = map[string]any{"replicaCount": int64(in.replicas(2)), "config": in.schedulerConfig()}
	}
	return values, err
}

// pathAdmissionCertificate is where the admission controller finds its certificate.
const pathAdmissionCertificate = "/etc/admission-controller/tls"

// completeAPIServer adds the values of the garden's API server.
func (in Inputs) completeAPIServer(values *gardenerprograms.Values) error {
	encryption, err := in.gardenerEncryptionSecret()
	if err != nil {
		return err
	}
	arguments, err := in.gardenerArguments()
	if err != nil {
		return err
	}
	name, replicas := values.Program.Name(), in.replicas(2)
	if in.highlyAvailable() {
		replicas = in.replicas(3)
	}
	values.Chart = map[string]any{
		"replicas": int64(replicas), "clusterIdentity": in.virtual().Gardener.ClusterIdentity,
		"etcd": map[string]any{
			"servers": []any{"https://" + prefix + etcd.Name(etcd.RoleMain) + "-client:2379"}, "secretName": in.secret(etcd.SecretClient),
		},
		"tls":                        map[string]any{"secretName": in.secret(name), "caBundle": string(in.bundle(constants.SecretNameCAGardener))},
		"encryptionConfigSecretName": encryption.Name, "externalName": name + "." + in.Namespace + ".svc",
		"workloadIdentity": map[string]any{
			"issuer": in.workloadIdentityIssuer(), "secretName": in.Secrets[constants.SecretNameWorkloadIdentitySigningKey].Active.Name,
		},
		"extraArgs": arguments,
	}
	key := in.Secrets[constants.SecretNameWorkloadIdentitySigningKey].Active.Name
	values.Volumes = map[string]corev1.VolumeSource{
		"etcd": gardenerprograms.SecretSource(map[string]string{
			"ca.crt":  in.trusted(constants.SecretNameCAETCD) + "/" + secrets.KeyBundleCert,
			"tls.crt": in.secret(etcd.SecretClient) + "/tls.crt", "tls.key": in.secret(etcd.SecretClient) + "/tls.key",
		}),
		"workload-identity": gardenerprograms.SecretSource(map[string]string{"key.pem": key + "/" + secrets.KeyRSA}),
	}
	values.Mounts = map[string]string{}
	return in.addAudit(values)
}
