package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DNSRecord asks an extension for a DNS record.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=dns
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="The type that an extension is responsible for"
// +kubebuilder:printcolumn:name="Domain Name",type=string,JSONPath=`.spec.name`,description="The domain name"
// +kubebuilder:printcolumn:name="Record Type",type=string,JSONPath=`.spec.recordType`,description="The type of the DNS record"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.lastOperation.state`,description="The state of the last operation"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="The age of the object"
type DNSRecord struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	Spec DNSRecordSpec `json:"spec"`
	// Status is what the controllers observed last.
	// +optional
	Status DNSRecordStatus `json:"status,omitempty"`
}

// DNSRecordList is a list of DNSRecord objects.
// +kubebuilder:object:root=true
type DNSRecordList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []DNSRecord `json:"items"`
}

// DNSRecordSpec is the desired state of a DNSRecord.
// +kubebuilder:validation:XValidation:rule="self.recordType != 'CNAME' || size(self.values) == 1",message="a CNAME record has one value"
// +kubebuilder:validation:XValidation:rule="self.recordType == 'TXT' || !self.name.startsWith('_')",message="only the name of a TXT record can begin with an underscore"
type DNSRecordSpec struct {
	DefaultSpec `json:",inline"`
	// SecretRef refers to the Secret with the credentials.
	// +kubebuilder:validation:XValidation:rule="has(self.name) && size(self.name) > 0",message="name is required"
	SecretRef corev1.SecretReference `json:"secretRef"`
	// Region is the region of the DNS service.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Region *string `json:"region,omitempty"`
	// Zone is the zone of the record. In effect without a value: the longest one that matches.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Zone *string `json:"zone,omitempty"`
	// Name is the fully qualified domain name. It is immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^(\*\.)?_?([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)+[a-z0-9]([-a-z0-9]*[a-z0-9])?\.?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Name string `json:"name"`
	// RecordType is the type of the record. It is immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	RecordType DNSRecordType `json:"recordType"`
	// Values are the values of the record.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	Values []string `json:"values"`
	// TTL is the time for which the record may be cached, in seconds. In effect without a value: 120.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	TTL *int64 `json:"ttl,omitempty"`
}

// DNSRecordType is the type of a DNS record.
// +enum
// +kubebuilder:validation:Enum=A;AAAA;CNAME;TXT
type DNSRecordType string

// The values of DNSRecordType.
const (
	// DNSRecordTypeA has IPv4 addresses.
	DNSRecordTypeA DNSRecordType = "A"
	// DNSRecordTypeAAAA has IPv6 addresses.
	DNSRecordTypeAAAA DNSRecordType = "AAAA"
	// DNSRecordTypeCNAME has another name.
	DNSRecordTypeCNAME DNSRecordType = "CNAME"
	// DNSRecordTypeTXT has text.
	DNSRecordTypeTXT DNSRecordType = "TXT"
)

// DNSRecordStatus is the observed state of a DNSRecord.
type DNSRecordStatus struct {
	DefaultStatus `json:",inline"`
	// Zone is the zone in which the record is.
	// +optional
	Zone *string `json:"zone,omitempty"`
}
