package apiserver

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	settingsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/settings/v1alpha1"
)

// storageVersions are the versions in which objects are stored. Each kind is stored in the version whose Go type is also
// its internal type.
var storageVersions = schema.GroupVersions{
	gardencorev1.SchemeGroupVersion, gardencorev1beta1.SchemeGroupVersion, operationsv1alpha1.SchemeGroupVersion,
	securityv1alpha1.SchemeGroupVersion, seedmanagementv1alpha1.SchemeGroupVersion, settingsv1alpha1.SchemeGroupVersion,
}

// newRecommendedOptions returns the common options of API servers, with objects stored as JSON.
func newRecommendedOptions(scheme *runtime.Scheme, codecs serializer.CodecFactory) *genericoptions.RecommendedOptions {
	stored := newJSON(scheme, false)
	options := genericoptions.NewRecommendedOptions(etcdPrefix, codecs.CodecForVersions(stored, stored, storageVersions, runtime.InternalGroupVersioner))
	options.Etcd.StorageConfig.EncodeVersioner = storageVersions
	options.Etcd.DefaultStorageMediaType = runtime.ContentTypeJSON
	return options
}

// jsonSerializer negotiates JSON and YAML. The API types have no protobuf encoding. Without this serializer, a client
// that prefers protobuf but also accepts JSON would get 406 Not Acceptable.
type jsonSerializer struct {
	runtime.NegotiatedSerializer
	scheme *runtime.Scheme
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (s jsonSerializer) SupportedMediaTypes() []runtime.SerializerInfo {
	infos := slices.DeleteFunc(slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes()), func(info runtime.SerializerInfo) bool {
		return info.MediaType == runtime.ContentTypeProtobuf
	})
	for i := range infos {
		if infos[i].MediaType == runtime.ContentTypeJSON {
			infos[i].Serializer, infos[i].StrictSerializer = newJSON(s.scheme, false), newJSON(s.scheme, true)
		}
	}
	return infos
}
