package nodeagentauthorizer

import (
	"context"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (v *view) machine(ctx context.Context, name string) (*machine, error) {
	return read(ctx, v, v.source, "Machine", name, func(ctx context.Context, reader client.Reader) (*machine, error) {
		object := newMachine()
		err := reader.Get(ctx, client.ObjectKey{Namespace: v.machineNamespace, Name: name}, object)
		return &machine{node: object.GetLabels()[labelNode], secret: secretOfMachine(object)}, err
	})
}

func (v *view) node(ctx context.Context, name string) (*node, error) {
	return read(ctx, v, v.target, "Node", name, func(ctx context.Context, reader client.Reader) (*node, error) {
		object := newNode()
		err := reader.Get(ctx, client.ObjectKey{Name: name}, object)
		return &node{name: name, secret: object.Labels[labelSecret], host: object.Labels[corev1.LabelHostname]}, err
	})
}

func (v *view) isPoolSecret(ctx context.Context, name string) (bool, error) {
	secret, err := v.secret(ctx, name)
	return secret != nil && secret.ofPool, err
}

// secret has the relevant fields of a Secret.
type secret struct {
	resourceVersion string
	ofPool          bool
}

func (v *view) secret(ctx context.Context, name string) (*secret, error) {
	return read(ctx, v, v.target, "Secret", name, func(ctx context.Context, reader client.Reader) (*secret, error) {
		object := newSecret()
		err := reader.Get(ctx, client.ObjectKey{Namespace: secretNamespace, Name: name}, object)
		_, ofPool := object.Labels[labelPool]
		return &secret{resourceVersion: object.ResourceVersion, ofPool: ofPool}, err
	})
}

func (v *view) poolSecrets(ctx context.Context) ([]string, error) {
	names, err := read(ctx, v, v.target, "Secret", "", func(ctx context.Context, reader client.Reader) (*[]string, error) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		err := reader.List(ctx, list, client.InNamespace(secretNamespace), client.HasLabels{labelPool})
		names := make([]string, 0, len(list.Items))
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return &names, err
	})
	if err != nil || names == nil {
		return nil, err
	}
	return *names, nil
}

func (v *view) isPodOn(ctx context.Context, namespace, name, node string) (bool, error) {
	return check(ctx, v, "Pod", namespace+"/"+name+"/"+node, func(ctx context.Context, reader client.Reader) (bool, error) {
		// API servers find a Pod by these fields as quickly as by its name, and do not send the whole Pod.
		pods := &metav1.PartialObjectMetadataList{}
		pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		err := reader.List(ctx, pods, client.InNamespace(namespace), client.MatchingFields{"metadata.name": name, nodeNameField: node})
		return len(pods.Items) == 1, err
	})
}

func (v *view) isRequestOf(ctx context.Context, name, user string) (bool, error) {
	return check(ctx, v, "CertificateSigningRequest", name, func(ctx context.Context, reader client.Reader) (bool, error) {
		request := &certificatesv1.CertificateSigningRequest{}
		err := reader.Get(ctx, client.ObjectKey{Name: name}, request)
		return err == nil && request.Spec.Username == user, client.IgnoreNotFound(err)
	})
}

// configuration is the parsed operating system configuration of a Secret.
type configuration struct {
	references      []reference
	err             error
	resourceVersion string
	readAt          time.Time
}

func (v *view) references(ctx context.Context, name string) ([]reference, error) {
	secret, err := v.secret(ctx, name)
	if err != nil || secret == nil {
		return nil, err
	}
	if known, found := v.known(name, secret.resourceVersion); found {
		return known.references, known.err
	}
	read, err := flight(ctx, v.lookup, "configuration", name, func(ctx context.Context) (configuration, error) {
		if known, found := v.known(name, secret.resourceVersion); found { // by a concurrent read
			return known, nil
		}
		v.metrics.reads.Inc("configuration")
		object := &corev1.Secret{}
		err := v.target.Live.Get(ctx, client.ObjectKey{Namespace: secretNamespace, Name: name}, object)
		if err != nil {
			return configuration{}, client.IgnoreNotFound(err)
		}
		references, err := referencesOf(object)
		read := configuration{references, err, object.ResourceVersion, v.clock.Now()}
		v.parsed.Add(name, read, parsedFor)
		return read, nil
	})
	if err != nil {
		return nil, err
	}
	return read.references, read.err
}

// known returns the configuration of a Secret if it is known in this version. If the cached metadata is older than the
// last read, it returns the last read for up to rememberFor.
func (v *view) known(name, resourceVersion string) (configuration, bool) {
	value, _ := v.parsed.Get(name)
	known, found := value.(configuration)
	return known, found && (known.resourceVersion == resourceVersion || v.clock.Since(known.readAt) < rememberFor)
}
