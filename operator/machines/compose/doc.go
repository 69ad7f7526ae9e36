// Package compose makes MachineServices of the services of Compose files (docker-compose.yaml), as "compose convert" does on the command
// line (package operator/machines/commands).
//
//	project, err := compose.Load(ctx, compose.Source{Files: []string{"docker-compose.yaml"}})
//	if err != nil {
//		return err // what is wrong with the files
//	}
//	converted, err := compose.Convert(project)
//	if err != nil {
//		return err // what makes a service that can't be
//	}
//	for _, r := range converted.Remarks {
//		log.Print(r) // services.web.networks: it has no counterpart, and is left out
//	}
//
// # Promises
//
//   - Nothing is left out without a remark: each field that is set in the files and was not converted is named, by its path in the
//     file. A field that says something only to readers and other programs (expose, attach, develop, x-*) is named too, but does not
//     count as lacking.
//   - Every service that comes out is valid (v1alpha1.MachineServiceSpec.Validate).
//   - Contents of configs and values of variables arrive as they are. One that is no text (UTF-8) can't, and is an error.
//   - Contents of secrets are not read. A service names the Secret that it wants, and a remark says how to make it.
//   - The same files and variables give the same services and remarks, in the same order.
//
// # What becomes of what
//
// A service that others wait for until it has completed (depends_on) becomes a job, and so does one with deploy.mode replicated-job.
// depends_on becomes dependsOn, which waits until the other service works or, for a job, has completed.
//
// The object has the name of the service, in lower case and with hyphens for what names of objects can't have. Volumes have the names
// that Compose gives them, with the name of the project before, so that they are found on a machine where Compose made them. A port that is
// published is one of the machine (mode host), on which no other container can have it. A service without a restart policy gets the default
// one, unless-stopped. Of environment variables those of env_file are part of the service, with their values. Variables in the files are
// those of Source.Environment, and of the file .env as Docker Compose reads it. docs/machines.md has a table of all keys.
//
// Two extensions say what Compose has no words for: x-machines lists the names of machines on which a service may be, within what its
// constraints allow, and x-ports lists ports as api.ParsePort reads them, such as those in mode ingress (shop.example.com:8080/https).
package compose
