// SPDX-License-Identifier: Apache-2.0
// Resolves artifacts with Maven's resolver and copies their jars:
//   Resolve REPOSITORY DIRECTORY LOCK [-lock=FILE] [GROUP:ARTIFACT[:VERSION]...]
// LOCK gets a line for each, "GROUP:ARTIFACT==VERSION --hash=sha256:...". FILE is such a list, whose hashes are checked, or a pom.xml.
// A failure is a line "FAILED ARTIFACT: why".

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.maven.repository.internal.MavenRepositorySystemUtils;
import org.apache.maven.wagon.Wagon;
import org.apache.maven.wagon.providers.http.HttpWagon;
import org.eclipse.aether.DefaultRepositorySystemSession;
import org.eclipse.aether.RepositorySystem;
import org.eclipse.aether.artifact.Artifact;
import org.eclipse.aether.artifact.DefaultArtifact;
import org.eclipse.aether.collection.CollectRequest;
import org.eclipse.aether.connector.basic.BasicRepositoryConnectorFactory;
import org.eclipse.aether.graph.Dependency;
import org.eclipse.aether.impl.DefaultServiceLocator;
import org.eclipse.aether.repository.LocalRepository;
import org.eclipse.aether.repository.Proxy;
import org.eclipse.aether.repository.RemoteRepository;
import org.eclipse.aether.repository.RepositoryPolicy;
import org.eclipse.aether.resolution.ArtifactDescriptorRequest;
import org.eclipse.aether.resolution.ArtifactDescriptorResult;
import org.eclipse.aether.resolution.ArtifactRequest;
import org.eclipse.aether.resolution.ArtifactResult;
import org.eclipse.aether.resolution.DependencyRequest;
import org.eclipse.aether.spi.connector.RepositoryConnectorFactory;
import org.eclipse.aether.spi.connector.transport.TransporterFactory;
import org.eclipse.aether.transfer.AbstractTransferListener;
import org.eclipse.aether.transfer.TransferEvent;
import org.eclipse.aether.transport.wagon.WagonProvider;
import org.eclipse.aether.transport.wagon.WagonTransporterFactory;
import org.eclipse.aether.util.filter.DependencyFilterUtils;
import org.eclipse.aether.util.repository.DefaultProxySelector;

public class Resolve {
    static final Pattern LOCKED = Pattern.compile("([\\w.-]+:[\\w.-]+(?::[\\w.-]+)?)==([\\w.+-]+)(?:\\s+--hash=sha256:([0-9a-f]{64}))?\\s*");

    final RepositorySystem system;
    final DefaultRepositorySystemSession session = MavenRepositorySystemUtils.newSession();
    final RemoteRepository remote;
    final Path local = Path.of("/workspace/repository");

    Resolve(String url) {
        DefaultServiceLocator locator = MavenRepositorySystemUtils.newServiceLocator();
        locator.addService(RepositoryConnectorFactory.class, BasicRepositoryConnectorFactory.class);
        locator.addService(TransporterFactory.class, WagonTransporterFactory.class);
        locator.setServices(WagonProvider.class, new WagonProvider() {
            @Override
            public Wagon lookup(String hint) {
                if (!hint.startsWith("http")) return null;
                HttpWagon wagon = new HttpWagon();
                wagon.setTimeout(30_000);
                return wagon;
            }

            @Override
            public void release(Wagon wagon) {
            }
        });
        system = locator.getService(RepositorySystem.class);
        session.setLocalRepositoryManager(system.newLocalRepositoryManager(session, new LocalRepository(local.toFile())));
        session.setChecksumPolicy(RepositoryPolicy.CHECKSUM_POLICY_FAIL);
        session.setIgnoreArtifactDescriptorRepositories(true); // only this repository can be reached
        session.setConfigProperty("aether.connector.requestTimeout", 30_000);
        session.setTransferListener(new AbstractTransferListener() {
            @Override
            public void transferSucceeded(TransferEvent event) {
                System.out.println("Downloaded " + event.getResource().getResourceName());
            }
        });
        DefaultProxySelector proxies = new DefaultProxySelector();
        Proxy proxy = new Proxy(Proxy.TYPE_HTTP, "127.0.0.1", 3128);
        proxies.add(proxy, null);
        session.setProxySelector(proxies);
        remote = new RemoteRepository.Builder("registry", "default", url).setProxy(proxy)
            .setPolicy(new RepositoryPolicy(true, RepositoryPolicy.UPDATE_POLICY_DAILY, RepositoryPolicy.CHECKSUM_POLICY_WARN)).build();
    }

    // "group:artifact:1.0", "group:artifact==1.0", "group:artifact@1.0", "group:artifact" for the newest release.
    static Artifact artifactOf(String word) {
        String[] parts = word.split("==|@|:");
        if (parts.length < 2 || parts.length > 4) throw new IllegalArgumentException(word + ": must be GROUP:ARTIFACT:VERSION");
        String classifier = parts.length == 4 ? parts[2] : "";
        String version = parts.length == 2 ? "RELEASE" : parts[parts.length - 1];
        return new DefaultArtifact(parts[0], parts[1], classifier, "jar", version);
    }

    static String nameOf(Artifact a) {
        return a.getGroupId() + ":" + a.getArtifactId() + (a.getClassifier().isEmpty() ? "" : ":" + a.getClassifier());
    }

    static String digest(Path file) throws Exception {
        return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(Files.readAllBytes(file)));
    }

    // Everything that the artifacts, or a project's pom.xml, need to run.
    List<Artifact> resolveAll(List<Artifact> wanted, Path pom) throws Exception {
        CollectRequest collect = new CollectRequest().addRepository(remote);
        if (pom != null) {
            Path place = local.resolve("layer/layer/0/layer-0.pom");
            Files.createDirectories(place.getParent());
            Files.copy(pom, place);
            ArtifactDescriptorResult project = system.readArtifactDescriptor(session,
                new ArtifactDescriptorRequest(new DefaultArtifact("layer:layer:pom:0"), List.of(remote), null));
            collect.setDependencies(project.getDependencies()).setManagedDependencies(project.getManagedDependencies());
        }
        for (Artifact artifact : wanted) collect.addDependency(new Dependency(artifact, "compile"));
        DependencyRequest request = new DependencyRequest(collect, DependencyFilterUtils.classpathFilter("runtime", "compile"));
        List<Artifact> all = new ArrayList<>();
        for (ArtifactResult result : system.resolveDependencies(session, request).getArtifactResults()) all.add(result.getArtifact());
        return all;
    }

    // Exactly the lines of a lock.
    List<Artifact> resolveLocked(String text) throws Exception {
        List<Artifact> all = new ArrayList<>();
        for (String line : text.split("\n")) {
            if (line.isBlank() || line.startsWith("#")) continue;
            Matcher found = LOCKED.matcher(line);
            if (!found.matches()) throw new IllegalArgumentException("lock: '" + line.strip() + "' is not GROUP:ARTIFACT==VERSION --hash=sha256:...");
            Artifact artifact = system.resolveArtifact(session,
                new ArtifactRequest(artifactOf(found.group(1) + ":" + found.group(2)), List.of(remote), null)).getArtifact();
            if (found.group(3) != null && !found.group(3).equals(digest(artifact.getFile().toPath())))
                throw new IllegalArgumentException(found.group(1) + ": the hash differs from that of the lock");
            all.add(artifact);
        }
        return all;
    }

    static void copy(List<Artifact> all, Path folder, Path lock) throws Exception {
        Map<String, String> lines = new TreeMap<>();
        for (Artifact artifact : all) {
            if (!artifact.getExtension().equals("jar")) continue;
            Path file = artifact.getFile().toPath();
            Path copy = folder.resolve(artifact.getGroupId() + "." + file.getFileName());
            Files.copy(file, copy, StandardCopyOption.REPLACE_EXISTING);
            lines.put(nameOf(artifact), nameOf(artifact) + "==" + artifact.getVersion() + " --hash=sha256:" + digest(file) + "\n");
        }
        Files.writeString(lock, String.join("", lines.values()));
    }

    static String explain(Throwable failure) {
        while (failure.getCause() != null && failure.getCause().getMessage() != null && failure.getMessage() != null
            && failure.getMessage().contains(failure.getCause().getMessage())) failure = failure.getCause();
        return String.valueOf(failure.getMessage()).replace('\n', ' ');
    }

    public static void main(String[] args) throws IOException {
        List<Artifact> wanted = new ArrayList<>();
        String lock = null;
        List<String> names = new ArrayList<>();
        try {
            for (int i = 3; i < args.length; i++) {
                if (args[i].startsWith("-lock=")) lock = Files.readString(Path.of(args[i].substring(6)), StandardCharsets.UTF_8);
                else {
                    names.add(args[i]);
                    wanted.add(artifactOf(args[i]));
                }
            }
            Resolve resolve = new Resolve(args[0]);
            List<Artifact> all;
            if (lock == null) {
                all = wanted.isEmpty() ? List.of() : resolve.resolveAll(wanted, null);
            } else if (lock.stripLeading().startsWith("<")) {
                Path pom = Path.of("/workspace/lock.pom");
                Files.writeString(pom, lock);
                all = resolve.resolveAll(List.of(), pom);
            } else {
                all = resolve.resolveLocked(lock);
            }
            copy(all, Path.of(args[1]), Path.of(args[2]));
        } catch (Exception failure) {
            System.out.println("FAILED " + (names.size() == 1 ? names.get(0) : lock != null ? "the lock" : String.join(", ", names)) + ": " + explain(failure));
            System.exit(1);
        }
    }
}
