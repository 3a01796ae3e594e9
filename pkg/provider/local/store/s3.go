package store

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcerrors"

	"github.com/trellis-k8s/trellis/pkg/conditiontext"
	"github.com/trellis-k8s/trellis/pkg/extension"
)

// Keys of credentials for S3, which are those of etcd-backup-restore.
const (
	KeyAccessKeyID     = "accessKeyID"
	KeySecretAccessKey = "secretAccessKey"
	KeyRegion          = "region"
	KeyEndpoint        = "endpoint"
	KeyForcePathStyle  = "s3ForcePathStyle"
	KeyTrustedCACert   = "trustedCaCert"
)

const (
	// defaultRegion is the region of stores other than Amazon's, which often have no regions. Buckets in it are created without a
	// location constraint.
	defaultRegion = "us-east-1"
	// requestTimeout limits each request.
	requestTimeout = 30 * time.Second
	// attempts is the number of attempts for each request. The controller also retries.
	attempts = 2
)

// Error codes for a bucket that does not exist: in general, and for requests whose responses have no body.
const (
	codeNoSuchBucket = "NoSuchBucket"
	codeNotFound     = "NotFound"
)

// s3Store is a store with the API of S3.
type s3Store struct {
	client *s3.Client
	region string
	// own is set for a store other than Amazon's.
	own bool
}

var _ Store = &s3Store{}

// regionOf returns the region of a bucket: the one in the credentials, otherwise the declared one. The declared regions of a
// store other than Amazon's need not be regions of the store.
func regionOf(data map[string][]byte, declared string) string {
	if len(data[KeyEndpoint]) > 0 {
		declared = ""
	}
	return cmp.Or(string(data[KeyRegion]), declared, defaultRegion)
}

// newS3 returns the store for credentials and the declared region of a bucket. Errors name the invalid keys.
func newS3(data map[string][]byte, region string) (*s3Store, error) {
	endpoint, pathStyle := string(data[KeyEndpoint]), false
	var errs []error
	if len(data[KeySecretAccessKey]) == 0 {
		errs = append(errs, fmt.Errorf("the key %s is missing", KeySecretAccessKey))
	}
	at, err := url.Parse(endpoint)
	if endpoint != "" && (err != nil || at.Scheme != "https" && at.Scheme != "http" || at.Host == "" || at.User != nil) {
		errs = append(errs, fmt.Errorf("the key %s must be a URL such as https://s3.example.org", KeyEndpoint))
	}
	if text := string(data[KeyForcePathStyle]); text != "" {
		var err error
		if pathStyle, err = strconv.ParseBool(text); err != nil {
			errs = append(errs, fmt.Errorf("the key %s must be true or false", KeyForcePathStyle))
		}
	}
	transport, err := transportFor(data[KeyTrustedCACert])
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, extension.ConfigurationProblem(err)
	}
	options := s3.Options{
		Region:           regionOf(data, region),
		Credentials:      credentials.NewStaticCredentialsProvider(string(data[KeyAccessKeyID]), string(data[KeySecretAccessKey]), ""),
		UsePathStyle:     pathStyle,
		HTTPClient:       &http.Client{Transport: transport, Timeout: requestTimeout},
		RetryMaxAttempts: attempts,
		// Some stores do not support Amazon's checksums.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}
	if endpoint != "" {
		options.BaseEndpoint = &endpoint
	}
	return &s3Store{client: s3.New(options), region: options.Region, own: endpoint != ""}, nil
}

// transportFor returns a transport that trusts the certificates in a PEM bundle, or those of the system if it is empty.
func transportFor(bundle []byte) (*http.Transport, error) {
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("the default HTTP transport was replaced by one that cannot be cloned")
	}
	transport := base.Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	transport.DisableKeepAlives = true // only few requests are sent to a store
	if len(bundle) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(bundle) {
			return nil, fmt.Errorf("the key %s has no certificates", KeyTrustedCACert)
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	return transport, nil
}

// Create creates a bucket if it does not exist.
func (s *s3Store) Create(ctx context.Context, bucket string) error {
	_, err := s.client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &bucket})
	if err == nil {
		return nil
	}
	if codeOf(err) != codeNotFound {
		return failed(err, "look for bucket %s", bucket)
	}
	input := &s3.CreateBucketInput{Bucket: &bucket}
	if !s.own && s.region != defaultRegion {
		input.CreateBucketConfiguration = &types.CreateBucketConfiguration{LocationConstraint: types.BucketLocationConstraint(s.region)}
	}
	if _, err := s.client.CreateBucket(ctx, input); err != nil {
		return failed(err, "create bucket %s", bucket)
	}
	return nil
}

// Delete deletes a bucket with its contents.
func (s *s3Store) Delete(ctx context.Context, bucket string) error {
	if err := s.empty(ctx, bucket, ""); err != nil {
		return err
	}
	_, err := s.client.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &bucket})
	if err == nil || codeOf(err) == codeNoSuchBucket {
		return nil
	}
	return failed(err, "delete bucket %s", bucket)
}

// DeleteEntry deletes all objects with the name of an entry as prefix.
func (s *s3Store) DeleteEntry(ctx context.Context, bucket, entry string) error {
	if entry == "" || strings.Contains(entry, "/") {
		return extension.ConfigurationProblem(fmt.Errorf("the name of an entry must not be empty or contain a slash: %q", entry))
	}
	return s.empty(ctx, bucket, entry+"/")
}

// empty deletes the objects of a bucket with a prefix. If the context ends before, the next call continues.
func (s *s3Store) empty(ctx context.Context, name, prefix string) error {
	options := &s3blob.Options{RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired}
	bucket, err := s3blob.OpenBucket(ctx, s.client, name, options)
	if err != nil {
		return fmt.Errorf("open bucket %s: %w", name, err)
	}
	defer func() { _ = bucket.Close() }() // nothing to flush
	objects := bucket.List(&blob.ListOptions{Prefix: prefix})
	for {
		object, err := objects.Next(ctx)
		if errors.Is(err, io.EOF) || err != nil && codeOf(err) == codeNoSuchBucket {
			return nil
		}
		if err != nil {
			return failed(err, "list the objects of bucket %s", name)
		}
		if err := bucket.Delete(ctx, object.Key); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
			return failed(err, "delete object %s of bucket %s", object.Key, name)
		}
	}
}

// codeOf returns the error code in a response of the store, or an empty string for other errors.
func codeOf(err error) string {
	var answered smithy.APIError
	if errors.As(err, &answered) {
		return answered.ErrorCode()
	}
	return ""
}

// failed returns the error for messages. It omits request IDs, so that the text is the same for the same cause.
func failed(err error, format string, args ...any) error {
	doing := fmt.Sprintf(format, args...)
	var answered smithy.APIError
	if errors.As(err, &answered) {
		return fmt.Errorf("%s: %s: %s", doing, answered.ErrorCode(), answered.ErrorMessage())
	}
	var sending *url.Error
	if errors.As(err, &sending) {
		return fmt.Errorf("%s: the store does not answer: %s", doing, conditiontext.Stable(sending.Error()))
	}
	return fmt.Errorf("%s: %w", doing, err)
}
