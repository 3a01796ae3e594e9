package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trellis-k8s/trellis/pkg/etcd/config"
	"github.com/trellis-k8s/trellis/pkg/etcd/snapshot"
	"github.com/trellis-k8s/trellis/pkg/objectstore"
	"github.com/trellis-k8s/trellis/pkg/objectstore/open"
)

// storeFlags are the flags that select a store.
type storeFlags struct {
	config   string
	location objectstore.Location
}

// add adds the flags. prefix distinguishes the stores of a command that uses two.
func (f *storeFlags) add(flags *pflag.FlagSet, prefix string) {
	flags.StringVar(&f.location.Provider, prefix+"provider", "", "type of the store: aws, azure, gcp, stackit or local")
	flags.StringVar(&f.location.Container, prefix+"bucket", "", "name of the bucket")
	flags.StringVar(&f.location.Prefix, prefix+"prefix", "", "path in the bucket, such as <BackupEntry>/etcd-main")
	flags.StringVar(&f.location.CredentialsDirectory, prefix+"credentials", "", "directory with a file for each key of the credentials")
	flags.StringVar(&f.location.Directory, prefix+"directory", "", "directory of the buckets of the provider local")
}

// addConfig adds the flag --config, which replaces the others.
func (f *storeFlags) addConfig(flags *pflag.FlagSet) {
	flags.StringVar(&f.config, "config", "", "configuration file of a member, from which the store is read")
}

// use calls do with the store.
func (f *storeFlags) use(ctx context.Context, do func(snapshot.Store) error) error {
	location := f.location
	if f.config != "" {
		settings, err := config.LoadMember(f.config)
		if err != nil {
			return err
		}
		if settings.Backup == nil {
			return fmt.Errorf("the configuration %s has no backup", f.config)
		}
		location = settings.Backup.Store
	}
	if location.Provider == "" {
		return errors.New("the store is not known: set --config, or --provider, --bucket and --prefix")
	}
	bucket, err := open.Bucket(ctx, location)
	if err != nil {
		return err
	}
	return errors.Join(do(snapshot.Store{Bucket: bucket}), bucket.Close())
}

// outputFlag is the format of the output.
type outputFlag struct{ format string }

func (o *outputFlag) add(flags *pflag.FlagSet) {
	flags.StringVarP(&o.format, "output", "o", "text", "format of the output: text or json")
}

// write writes a result as JSON, or with a function as text.
func (o *outputFlag) write(to io.Writer, result any, text func(io.Writer)) error {
	switch o.format {
	case "text":
		text(to)
		return nil
	case "json":
		encoder := json.NewEncoder(to)
		encoder.SetIndent("", "  ")
		return encoder.Encode(result)
	}
	return fmt.Errorf("the output format %q is not supported: use text or json", o.format)
}

const exampleStore = "--provider local --directory /backups --bucket my-bucket --prefix my-entry/etcd-main"

// inspectCommand returns the command list or verify.
func inspectCommand(use, short, long string, inspect func(snapshot.Store, context.Context) (snapshot.Verified, error), strict bool) *cobra.Command {
	var from storeFlags
	var output outputFlag
	command := &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.NoArgs,
		Example: "  etcd-member " + use + " " + exampleStore + "\n\n  # in a Pod of the StatefulSet\n  etcd-member " + use +
			" --config /var/etcd/config/member.yaml -o json",
		RunE: func(command *cobra.Command, _ []string) error {
			return from.use(command.Context(), func(store snapshot.Store) error {
				result, err := inspect(store, command.Context())
				if err != nil {
					return err
				}
				if err := output.write(command.OutOrStdout(), result, func(w io.Writer) { describe(w, result) }); err != nil {
					return err
				}
				if strict && !result.Complete {
					return fmt.Errorf("the backups have %d problems", len(result.Problems))
				}
				return nil
			})
		},
	}
	from.add(command.Flags(), "")
	from.addConfig(command.Flags())
	output.add(command.Flags())
	return command
}

func describe(to io.Writer, result snapshot.Verified) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, epoch := range result.Epochs {
		_, _ = fmt.Fprintf(w, "EPOCH %d of cluster %s: complete up to revision %d\n", epoch.Number, epoch.Cluster, epoch.Last)
		for _, object := range epoch.Objects {
			_, _ = fmt.Fprintf(w, "  %s\t%d-%d\t%s\t%d bytes\n", object.Kind, object.First, object.Last, object.Created.Format(time.RFC3339), object.Size)
		}
	}
	for _, problem := range result.Problems {
		_, _ = fmt.Fprintln(w, "PROBLEM "+problem)
	}
	_ = w.Flush()
}

// restoreCommand returns the command restore.
func restoreCommand() *cobra.Command {
	var from storeFlags
	var output outputFlag
	target := snapshot.Target{}
	keep := false
	command := &cobra.Command{
		Use: "restore", Short: "Create a data directory of etcd from the backups", Args: cobra.NoArgs,
		Long: `restore creates a data directory of etcd from the newest complete and undamaged backups. It belongs to a new cluster with one
member. The directory must not exist. It appears only when it is complete.

The revision is increased by 1000000000, and all earlier revisions are compacted, so that clients do not mistake new objects for ones that
they have seen. With --keep-revision, it stays as it is. Use this only to look at the data.`,
		Example: "  etcd-member restore " + exampleStore + " --to /restored\n  etcd --data-dir /restored",
		RunE: func(command *cobra.Command, _ []string) error {
			if target.Directory == "" {
				return errors.New("--to is missing: set it to the directory to create")
			}
			path, err := filepath.Abs(target.Directory)
			if err != nil {
				return err
			}
			if _, err := os.Stat(path); err == nil {
				return fmt.Errorf("%s exists: set --to to a directory that does not", path)
			}
			target.Directory, target.Token, target.Bump = path, "restored-"+time.Now().UTC().Format("20060102150405"), snapshot.RevisionBump
			if keep {
				target.Bump = 0
			}
			return from.use(command.Context(), func(store snapshot.Store) error {
				result, err := store.Restore(command.Context(), target)
				if err != nil {
					return err
				}
				return output.write(command.OutOrStdout(), result, func(w io.Writer) {
					_, _ = fmt.Fprintf(w, "Restored the revision %d of cluster %s (epoch %d) to %s\n", result.Revision, result.Epoch.Cluster, result.Epoch.Number, path)
					for _, note := range result.Notes {
						_, _ = fmt.Fprintln(w, "NOTE "+note)
					}
				})
			})
		},
	}
	flags := command.Flags()
	from.add(flags, "")
	from.addConfig(flags)
	output.add(flags)
	flags.StringVar(&target.Directory, "to", "", "data directory of etcd to create")
	flags.StringVar(&target.Name, "name", "default", "name of the member")
	flags.StringVar(&target.PeerURL, "peer-url", "http://localhost:2380", "peer URL of the member")
	flags.IntVar(&target.Epoch, "epoch", 0, "number of the epoch to restore; 0 for the latest one")
	flags.Int64Var(&target.AtLeast, "at-least", 0, "revision that the backups must reach; 0 to accept any")
	flags.BoolVar(&keep, "keep-revision", false, "do not increase the revision")
	return command
}

// copyCommand returns the command copy.
func copyCommand() *cobra.Command {
	var from, to storeFlags
	var output outputFlag
	var options snapshot.CopyOptions
	command := &cobra.Command{
		Use: "copy", Short: "Copy backups to another store", Args: cobra.NoArgs,
		Long: `copy copies the backups of one etcd to another store. Each object is verified. The target is used by a restoration only when the copy
is complete. A copy that was interrupted continues where it stopped.`,
		Example: "  etcd-member copy --source-provider local --source-directory /backups --source-bucket a --source-prefix entry/etcd-main " +
			"--provider local --directory /backups --bucket b --prefix entry/etcd-main",
		RunE: func(command *cobra.Command, _ []string) error {
			return from.use(command.Context(), func(source snapshot.Store) error {
				return to.use(command.Context(), func(target snapshot.Store) error {
					result, err := source.Copy(command.Context(), target, options, time.Now())
					if err != nil {
						return err
					}
					return output.write(command.OutOrStdout(), result, func(w io.Writer) {
						_, _ = fmt.Fprintf(w, "Copied %d snapshots, %d of them before\n", result.Objects, result.Present)
					})
				})
			})
		},
	}
	flags := command.Flags()
	from.add(flags, "source-")
	to.add(flags, "")
	output.add(flags)
	flags.IntVar(&options.MaxFull, "max-backups", 0, "number of full snapshots to copy, with their delta snapshots; 0 for all")
	flags.DurationVar(&options.MaxAge, "max-age", 0, "age of the snapshots to copy; 0 for all")
	flags.BoolVar(&options.Final, "wait-for-final", false, "wait until the last full snapshot is a final one")
	flags.DurationVar(&options.FinalTimeout, "final-timeout", 0, "time to wait for it, before what exists is copied; 0 for no limit")
	return command
}

// compactCommand returns the command compact.
func compactCommand() *cobra.Command {
	var from storeFlags
	var output outputFlag
	var directory, compression string
	command := &cobra.Command{
		Use: "compact", Short: "Merge delta snapshots into a full snapshot", Args: cobra.NoArgs,
		Long:    `compact merges the last full snapshot and the delta snapshots after it into a new full snapshot. etcd need not run.`,
		Example: "  etcd-member compact " + exampleStore,
		RunE: func(command *cobra.Command, _ []string) error {
			return from.use(command.Context(), func(store snapshot.Store) error {
				object, err := store.Compact(command.Context(), directory, compression, time.Now())
				if err != nil {
					return err
				}
				return output.write(command.OutOrStdout(), object, func(w io.Writer) {
					_, _ = fmt.Fprintf(w, "The full snapshot %s contains the revision %d\n", object.Key, object.Last)
				})
			})
		},
	}
	flags := command.Flags()
	from.add(flags, "")
	from.addConfig(flags)
	output.add(flags)
	flags.StringVar(&directory, "temporary-directory", "", "directory for the merged database")
	flags.StringVar(&compression, "compression", snapshot.CompressionGzip, "compression of the snapshot: none, gzip, zlib or lzw")
	return command
}

// backupCommands returns the commands about backups.
func backupCommands() []*cobra.Command {
	return []*cobra.Command{
		inspectCommand("list", "List backups", "list shows the epochs and snapshots in a store. It does not read their contents.", snapshot.Store.Inspect, false),
		inspectCommand("verify", "Verify backups",
			"verify reads all snapshots in a store, and checks that they are complete and undamaged and that no revision is missing.\nIt fails if they are not.",
			snapshot.Store.Verify, true),
		restoreCommand(), copyCommand(), compactCommand(),
	}
}
