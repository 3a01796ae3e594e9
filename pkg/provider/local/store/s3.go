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

// The keys of credentials for S3, as etcd-backup-restore reads them.
const (
	KeyAccessKeyID     = "accessKeyID"
	KeySecretAccessKey = "secretAccessKey"
	KeyRegion          = "region"
	KeyEndpoint        = "endpoint"
	KeyForcePathStyle  = "s3ForcePathStyle"
	KeyTrustedCACert   = "trustedCaCert"
)

const (
	// defaultRegion is that of stores which know no regions. Buckets in it are created without a region.
	defaultRegion = "us-east-1"
	// requestTimeout is how long one request may take.
	requestTimeout = 30 * time.Second
	// attempts of one request: the controller tries again, too.
	attempts = 2
)

// The codes of a bucket that does not exist: in general, and in the answer to a request whose answers have no body.
const (
	codeNoSuchBucket = "NoSuchBucket"
	codeNotFound     = "NotFound"
)

// s3Store keeps each bucket as a bucket of S3.
type s3Store struct {
	client *s3.Client
	region string
	// own is set for a store that is not that of Amazon.
	own bool
}

var _ Store = &s3Store{}

// newS3 returns the store that credentials are for. Errors say which key is wrong.
func newS3(data map[string][]byte) (*s3Store, error) {
	endpoint, pathStyle := string(data[KeyEndpoint]), false
	var errs []error
	if len(data[KeySecretAccessKey]) == 0 {
		errs = append(errs, fmt.Errorf("the key %s is missing", KeySecretAccessKey))
	}
	if at, err := url.Parse(endpoint); endpoint != "" && (err != nil || at.Scheme != "https" && at.Scheme != "http" || at.Host == "" || at.User != nil) {
		errs = append(errs, fmt.Errorf("the key %s has to be a URL such as https://s3.example.org", KeyEndpoint))
	}
	if text := string(data[KeyForcePathStyle]); text != "" {
		var err error
		if pathStyle, err = strconv.ParseBool(text); err != nil {
			errs = append(errs, fmt.Errorf("the key %s has to be true or false", KeyForcePathStyle))
		}
	}
	transport, err := transportFor(data[KeyTrustedCACert])
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, extension.ConfigurationProblem(err)
	}
	options := s3.Options{
		Region:           cmp.Or(string(data[KeyRegion]), defaultRegion),
		Credentials:      credentials.NewStaticCredentialsProvider(string(data[KeyAccessKeyID]), string(data[KeySecretAccessKey]), ""),
		UsePathStyle:     pathStyle,
		HTTPClient:       &http.Client{Transport: transport, Timeout: requestTimeout},
		RetryMaxAttempts: attempts,
		// Not every store knows the checksums that Amazon's has.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}
	if endpoint != "" {
		options.BaseEndpoint = &endpoint
	}
	return &s3Store{client: s3.New(options), region: options.Region, own: endpoint != ""}, nil
}

// transportFor returns a transport that trusts the authorities of the system, or those of a bundle in PEM in their place.
func transportFor(bundle []byte) (*http.Transport, error) {
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("the transport of HTTP requests was replaced by one that cannot be copied")
	}
	transport := base.Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	transport.DisableKeepAlives = true // a store is used for a few requests
	if len(bundle) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(bundle) {
			return nil, fmt.Errorf("the key %s has no certificates", KeyTrustedCACert)
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	return transport, nil
}

// Create makes a bucket. One that exists and can be used stays.
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
		return failed(err, "make bucket %s", bucket)
	}
	return nil
}

// Delete deletes a bucket with all that is in it.
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

// DeleteEntry deletes all objects below the name of an entry.
func (s *s3Store) DeleteEntry(ctx context.Context, bucket, entry string) error {
	if entry == "" || strings.Contains(entry, "/") {
		return extension.ConfigurationProblem(fmt.Errorf("the name of an entry must not be empty, or have a slash: %q", entry))
	}
	return s.empty(ctx, bucket, entry+"/")
}

// empty deletes the objects of a bucket whose names begin with a prefix. What it has not deleted when the context ends, the next call does.
func (s *s3Store) empty(ctx context.Context, name, prefix string) error {
	bucket, err := s3blob.OpenBucket(ctx, s.client, name, &s3blob.Options{RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired})
	if err != nil {
		return fmt.Errorf("open bucket %s: %w", name, err)
	}
	defer func() { _ = bucket.Close() }() // it holds nothing
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

// codeOf returns the code of an error that the store has answered with; empty for others.
func codeOf(err error) string {
	var answered smithy.APIError
	if errors.As(err, &answered) {
		return answered.ErrorCode()
	}
	return ""
}

// failed returns what is reported about an error. The identifiers of requests are left out: the text is the same for the same cause.
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
