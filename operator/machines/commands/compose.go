package commands

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/operatorkit/operatorkit/operator/machines/compose"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
)

func composeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "compose", Short: "Work with Compose files", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(convertCommand())
	return cmd
}

func convertCommand() *cobra.Command {
	source := compose.Source{}
	var namespace string
	var strict bool
	cmd := &cobra.Command{
		Use:   "convert",
		Short: "Make MachineServices of the services of Compose files",
		Long: "Print the services of Compose files (docker-compose.yaml) as MachineServices, for \"kubectl apply -f -\" or\n" +
			"\"plan -f -\". What has no counterpart is left out and named on stderr, with what is to be done besides.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			source.Environment = os.Environ()
			project, err := compose.Load(cmd.Context(), source)
			if err != nil {
				return err
			}
			converted, err := compose.Convert(project)
			if err != nil {
				return err
			}
			for _, r := range converted.Remarks {
				if _, err := fmt.Fprintln(cmd.ErrOrStderr(), r); err != nil {
					return err
				}
			}
			if strict && len(converted.Lacking()) > 0 {
				return errors.New("not everything has a counterpart: take out of the files what is named above, or leave out --strict")
			}
			for _, svc := range converted.Services {
				svc.Namespace = namespace
				document, err := manifest(svc)
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "---\n%s", document); err != nil {
					return err
				}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVarP(&source.Files, "file", "f", nil, "Compose files, a later one of which adds to those before (default those of COMPOSE_FILE, or that docker compose takes here)")
	flags.StringArrayVar(&source.EnvFiles, "env-file", nil, "files of variables, a later one of which counts before those before (default .env in the directory of the project)")
	flags.StringVar(&source.Directory, "project-directory", "", "directory of relative paths in the files (default that of the first file)")
	flags.StringVarP(&source.ProjectName, "project-name", "p", "", "name of the project, with which the names of volumes begin (default that in the files, or of the directory)")
	flags.StringSliceVar(&source.Profiles, "profile", nil, "profiles whose services are taken, besides those of none (default those of COMPOSE_PROFILES)")
	flags.StringVarP(&namespace, "namespace", "n", "", "namespace that the objects say (default none)")
	flags.BoolVar(&strict, "strict", false, "print nothing and fail if something has no counterpart")
	return cmd
}

// manifest returns an object as people write it: without a status.
func manifest(svc *v1alpha1.MachineService) ([]byte, error) {
	text, err := yaml.Marshal(svc)
	if err != nil {
		return nil, fmt.Errorf("write MachineService %s: %w", svc.Name, err)
	}
	return text, nil
}
