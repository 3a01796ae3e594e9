package apiserverfiles

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// File is a configuration file of kube-apiserver that users provide.
type File struct {
	// Path is the path of the webhook.
	Path string
	// field is the field of a Shoot with the reference, and key the key of the data of the ConfigMap.
	field, key string
	// configMap returns the name of the ConfigMap that a Shoot refers to, or an empty string.
	configMap func(*corev1beta1.KubeAPIServerConfig) string
	// check returns what is wrong with the content of the file for a Shoot.
	check func(content string, shoot *corev1beta1.Shoot) error
}

// The files.
var (
	AuditPolicy = File{
		Path: "/webhooks/audit-policies", field: "auditConfig.auditPolicy.configMapRef", key: "policy", check: checkAuditPolicy,
		configMap: func(server *corev1beta1.KubeAPIServerConfig) string {
			if server.AuditConfig == nil || server.AuditConfig.AuditPolicy == nil || server.AuditConfig.AuditPolicy.ConfigMapRef == nil {
				return ""
			}
			return server.AuditConfig.AuditPolicy.ConfigMapRef.Name
		},
	}
	Authentication = File{
		Path: "/webhooks/authentication-configuration", field: "structuredAuthentication.configMapName", key: "config.yaml",
		check: checkAuthentication,
		configMap: func(server *corev1beta1.KubeAPIServerConfig) string {
			if server.StructuredAuthentication == nil {
				return ""
			}
			return server.StructuredAuthentication.ConfigMapName
		},
	}
	Authorization = File{
		Path: "/webhooks/authorization-configuration", field: "structuredAuthorization.configMapName", key: "config.yaml",
		check: checkAuthorization,
		configMap: func(server *corev1beta1.KubeAPIServerConfig) string {
			if server.StructuredAuthorization == nil {
				return ""
			}
			return server.StructuredAuthorization.ConfigMapName
		},
	}
)

// name returns the name of the ConfigMap that a Shoot refers to, or an empty string.
func (f File) name(shoot *corev1beta1.Shoot) string {
	if shoot.Spec.Kubernetes.KubeAPIServer == nil {
		return ""
	}
	return f.configMap(shoot.Spec.Kubernetes.KubeAPIServer)
}

// New returns the handler of a file. It checks the file of a Shoot that is created or changed, and a ConfigMap that changes
// for all Shoots that refer to it. The reader must read from the garden without a cache.
func New(reader client.Reader, file File) admission.Handler {
	h := handler{reader: reader, file: file}
	return admit.Validating(func(ctx context.Context, request *admission.Request) error {
		switch {
		case request.SubResource != "" || request.Operation == admissionv1.Delete:
			return nil
		case request.Kind.Kind == "Shoot":
			return h.checkShoot(ctx, request)
		}
		return h.checkConfigMap(ctx, request)
	})
}

type handler struct {
	reader client.Reader
	file   File
}

func (h handler) checkShoot(ctx context.Context, request *admission.Request) error {
	shoot, err := admit.Decode[corev1beta1.Shoot](request, request.Object.Raw)
	if err != nil {
		return err
	}
	name := h.file.name(shoot)
	if name == "" || shoot.DeletionTimestamp != nil {
		return nil
	}
	if len(request.OldObject.Raw) > 0 {
		before, err := admit.Decode[corev1beta1.Shoot](request, request.OldObject.Raw)
		if err != nil {
			return err
		}
		if equality.Semantic.DeepEqual(before.Spec.Kubernetes, shoot.Spec.Kubernetes) {
			return nil // a file that has become invalid must not prevent other changes
		}
	}
	configMap := &corev1.ConfigMap{}
	switch err := h.reader.Get(ctx, client.ObjectKey{Namespace: request.Namespace, Name: name}, configMap); {
	case apierrors.IsNotFound(err):
		return h.refuse(shoot, name, fmt.Errorf("the ConfigMap does not exist in namespace %s", request.Namespace))
	case err != nil:
		return fmt.Errorf("read ConfigMap %s/%s: %w", request.Namespace, name, err)
	}
	return h.checkContent(configMap, shoot)
}

func (h handler) checkConfigMap(ctx context.Context, request *admission.Request) error {
	after, err := admit.Decode[corev1.ConfigMap](request, request.Object.Raw)
	if err != nil {
		return err
	}
	before, err := admit.Decode[corev1.ConfigMap](request, request.OldObject.Raw)
	if err != nil || before.Data[h.file.key] == after.Data[h.file.key] || after.DeletionTimestamp != nil {
		return err
	}
	shoots := &corev1beta1.ShootList{}
	if err := h.reader.List(ctx, shoots, client.InNamespace(request.Namespace)); err != nil {
		return fmt.Errorf("list the Shoots that may refer to ConfigMap %s/%s: %w", request.Namespace, request.Name, err)
	}
	for i := range shoots.Items {
		shoot := &shoots.Items[i]
		if shoot.DeletionTimestamp != nil || h.file.name(shoot) != request.Name {
			continue
		}
		if err := h.checkContent(after, shoot); err != nil {
			return err
		}
	}
	return nil
}

func (h handler) checkContent(configMap *corev1.ConfigMap, shoot *corev1beta1.Shoot) error {
	content := configMap.Data[h.file.key]
	if content == "" {
		return h.refuse(shoot, configMap.Name, fmt.Errorf("it has no data with the key %s", h.file.key))
	}
	if err := h.file.check(content, shoot); err != nil {
		return h.refuse(shoot, configMap.Name, err)
	}
	return nil
}

func (h handler) refuse(shoot *corev1beta1.Shoot, configMap string, err error) error {
	return admit.Refuse(http.StatusUnprocessableEntity, "ConfigMap %s, to which Shoot %s refers in spec.kubernetes.kubeAPIServer.%s: %w",
		configMap, shoot.Name, h.file.field, err)
}
